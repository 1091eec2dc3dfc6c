/* linear_fwd, linear_bwd_x and linear_bwd_w against plain loops in double. */
// TEST ranks=1 timeout=30
#include "kernel_case.h"

/* Rows further apart than they are long by x_gap and y_gap; 0: contiguous, said by a stride of 0.
 */
static const struct shape {
    int64_t N;
    int in, out, x_gap, y_gap;
} shapes[] = {
    {0, 8, 8, 0, 0},      {1, 1, 1, 0, 0},      {1, 96, 64, 0, 3},    {7, 1, 5, 2, 0},
    {5, 33, 17, 1, 2},    {64, 64, 64, 0, 0},   {129, 65, 257, 0, 7}, {130, 31, 1, 5, 0},
    {257, 40, 9, 0, 0},   {1200, 30, 40, 2, 2}, {6, 600, 2000, 0, 0}, {1300, 9, 7, 0, 0},
    {33, 512, 512, 0, 0},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

enum op { FWD, BWD_X, BWD_W, N_OPS };

struct job {
    enum op op;
    struct linear_shape shape;
    enum dtype dt, c_dt; /* of the operands and of the result */
    bool accumulate;
    int64_t xs, ys; /* strides */
    const void *x, *y, *w;
};

static void run(const struct job *j, void *c, int threads)
{
    const struct backend *be = &backend_cpu;
    struct stream *s = be->stream_create(threads);
    if (j->op == FWD) be->linear_fwd(s, c, j->c_dt, j->x, j->w, j->dt, &j->shape);
    if (j->op == BWD_X) be->linear_bwd_x(s, c, j->y, j->w, j->dt, &j->shape, j->accumulate);
    if (j->op == BWD_W) be->linear_bwd_w(s, c, j->y, j->x, j->dt, &j->shape);
    be->stream_destroy(s);
}

/* Element (row, col) of the result, and the sum of the sizes of its products. */
static double want(const struct job *j, int64_t row, int64_t col, double *size, int64_t *n)
{
    const struct linear_shape *s = &j->shape;
    double sum = 0.0;
    *size = 0.0;
    *n = j->op == FWD ? s->in : j->op == BWD_X ? s->out : s->N;
    for (int64_t k = 0; k < *n; k++) {
        const int64_t x_at = j->op == FWD ? row * j->xs + k : k * j->xs + col;
        const int64_t y_at = j->op == BWD_X ? row * j->ys + k : k * j->ys + row;
        const int64_t w_at = j->op == FWD ? col * s->in + k : k * s->in + col;
        const double x = j->op == BWD_X ? 1.0 : case_get(j->x, j->dt, x_at);
        const double y = j->op == FWD ? 1.0 : case_get(j->y, j->dt, y_at);
        const double w = j->op == BWD_W ? 1.0 : case_get(j->w, j->dt, w_at);
        sum += x * y * w;
        *size += fabs(x * y * w);
    }
    return sum;
}

static void check(const struct job *j)
{
    const struct linear_shape *s = &j->shape;
    const int64_t rows = j->op == BWD_W ? s->out : s->N, cols = j->op == FWD ? s->out : s->in;
    const int64_t stride = j->op == FWD ? j->ys : j->op == BWD_X ? j->xs : s->in;
    const bool adds = j->op == BWD_W || j->accumulate;
    void *const before = case_random(j->c_dt, rows * stride, 4);
    for (int64_t i = 0; !adds && i < rows; i++) /* what is overwritten may be anything */
        for (int64_t c = 0; c < cols; c++) case_set(before, j->c_dt, i * stride + c, NAN);
    void *const got = case_copy(before, j->c_dt, rows * stride);
    void *const again = case_copy(before, j->c_dt, rows * stride);
    void *const three = case_copy(before, j->c_dt, rows * stride);
    run(j, got, 1);
    run(j, again, 1);
    run(j, three, 3);
    EXPECT(case_same_bits(got, again, j->c_dt, rows * stride), "second call differs");
    EXPECT(case_same_bits(got, three, j->c_dt, rows * stride), "three threads differ");

    int n_wrong = 0;
    for (int64_t i = 0; i < rows * stride; i++) {
        const int64_t row = i / stride, col = i % stride;
        const double x = case_get(got, j->c_dt, i), old = case_get(before, j->c_dt, i);
        double size, value = old, tolerance = 0.0; /* between the rows nothing is written */
        int64_t n;
        if (col < cols) {
            value = want(j, row, col, &size, &n) + (adds ? old : 0.0);
            tolerance = case_tolerance(j->c_dt, n, size + (adds ? fabs(old) : 0.0), value);
        }
        n_wrong += !(fabs(x - value) <= tolerance);
    }
    EXPECT(n_wrong == 0, "op %d N %ld in %d out %d %s -> %s accumulate %d: %d wrong", (int)j->op,
           (long)s->N, s->in, s->out, dtype_name(j->dt), dtype_name(j->c_dt), j->accumulate,
           n_wrong);
    mem_free(before);
    mem_free(got);
    mem_free(again);
    mem_free(three);
}

static void check_shape(const struct shape *sh, enum dtype dt)
{
    struct job j = {.dt = dt, .xs = sh->in + sh->x_gap, .ys = sh->out + sh->y_gap};
    j.shape =
        (struct linear_shape){sh->N, sh->in, sh->out, sh->x_gap ? j.xs : 0, sh->y_gap ? j.ys : 0};
    void *const x = case_random(dt, sh->N * j.xs, 1), *const y = case_random(dt, sh->N * j.ys, 2);
    void *const w = case_random(dt, (int64_t)sh->in * sh->out, 3);
    j.x = x, j.y = y, j.w = w;
    for (int op = 0; op < N_OPS; op++) {
        for (int variant = 0; variant < 2; variant++) {
            j.op = (enum op)op;
            j.c_dt = op == BWD_W || (op == FWD && variant) ? DTYPE_F32 : dt;
            j.accumulate = op == BWD_X && variant;
            check(&j);
        }
    }
    mem_free(x);
    mem_free(y);
    mem_free(w);
}

int main(void)
{
    for (int i = 0; i < N_SHAPES; i++) {
        check_shape(&shapes[i], DTYPE_F32);
        check_shape(&shapes[i], DTYPE_BF16);
    }
    EXPECT(mem_live() == 0, "%ld blocks left", mem_live());
    return test_end();
}
