/* The grouped products are, bit for bit, one linear call per group, also where groups are empty. */
// TEST ranks=1 timeout=30
#include "kernel_case.h"

enum { MAX_GROUPS = 9 };
static const struct groups {
    int n;
    int64_t rows[MAX_GROUPS];
    int in, out;
} cases[] = {
    {8, {0, 0, 5, 0, 1, 0, 0, 0}, 33, 17},
    {8, {0}, 16, 8},
    {8, {0, 0, 0, 0, 0, 0, 0, 7}, 8, 24},
    {3, {300, 0, 0}, 64, 96},
    {8, {44, 1, 0, 32, 31, 33, 7, 64}, 40, 72},
    {1, {5}, 1, 1},
    {0, {0}, 8, 8},
    {9, {3, 0, 1, 257, 1200, 0, 2, 1, 0}, 20, 1600},
};
enum { N_CASES = sizeof cases / sizeof *cases };

enum op { FWD, BWD_X, BWD_W };

struct job {
    enum op op;
    enum dtype dt;
    struct grouped_shape shape;
    bool accumulate;
    void *x, *y, *w;
};

static void run_grouped(const struct job *j, void *c, int threads)
{
    const struct backend *be = &backend_cpu;
    struct stream *s = be->stream_create(threads);
    if (j->op == FWD) be->grouped_fwd(s, c, j->x, j->w, j->dt, &j->shape);
    if (j->op == BWD_X) be->grouped_bwd_x(s, c, j->y, j->w, j->dt, &j->shape, j->accumulate);
    if (j->op == BWD_W) be->grouped_bwd_w(s, c, j->y, j->x, j->dt, &j->shape);
    be->stream_destroy(s);
}

/* The same by linear calls, which t_kernels_linear compares with loops. */
static void run_linear(const struct job *j, void *c)
{
    const struct backend *be = &backend_cpu;
    const int in = j->shape.in, out = j->shape.out;
    struct stream *s = be->stream_create(1);
    for (int g = 0; g < j->shape.n_groups; g++) {
        const int64_t first = j->shape.offset[g], rows = j->shape.offset[g + 1] - first;
        const struct linear_shape shape = {rows, in, out, 0, 0};
        void *const x = elem(j->op == BWD_X ? c : j->x, j->dt, first * in);
        void *const y = elem(j->op == FWD ? c : j->y, j->dt, first * out);
        void *const w = j->op == BWD_W ? elem(c, DTYPE_F32, (int64_t)g * in * out)
                                       : elem(j->w, j->dt, (int64_t)g * in * out);
        if (j->op == FWD) be->linear_fwd(s, y, j->dt, x, w, j->dt, &shape);
        if (j->op == BWD_X) be->linear_bwd_x(s, x, y, w, j->dt, &shape, j->accumulate);
        if (j->op == BWD_W) be->linear_bwd_w(s, w, y, x, j->dt, &shape);
    }
    be->stream_destroy(s);
}

static void check(const struct job *j)
{
    const int64_t rows = j->shape.offset[j->shape.n_groups];
    const int64_t n = j->op == FWD     ? rows * j->shape.out
                      : j->op == BWD_X ? rows * j->shape.in
                                       : (int64_t)j->shape.n_groups * j->shape.in * j->shape.out;
    const enum dtype dt = j->op == BWD_W ? DTYPE_F32 : j->dt;
    void *const want = case_random(dt, n + 1, 4); /* the element behind the end must stay */
    for (int64_t i = 0; j->op != BWD_W && !j->accumulate && i < n; i++) case_set(want, dt, i, NAN);
    void *const got = case_copy(want, dt, n + 1), *const three = case_copy(want, dt, n + 1);
    void *const before = case_copy(want, dt, n + 1);
    run_linear(j, want);
    run_grouped(j, got, 1);
    run_grouped(j, three, 3);
    const char *const name = dtype_name(j->dt);
    EXPECT(case_same_bits(got, want, dt, n + 1), "op %d %d groups %s accumulate %d", (int)j->op,
           j->shape.n_groups, name, j->accumulate);
    EXPECT(case_same_bits(got, three, dt, n + 1), "op %d %s: three threads differ", (int)j->op,
           name);

    /* A group without rows leaves its matrix's gradient as it was. */
    const int64_t size = (int64_t)j->shape.in * j->shape.out;
    for (int g = 0; j->op == BWD_W && g < j->shape.n_groups; g++)
        if (j->shape.offset[g] == j->shape.offset[g + 1])
            EXPECT(case_same_bits((float *)got + g * size, (float *)before + g * size, dt, size),
                   "empty group %d changed", g);
    mem_free(want);
    mem_free(got);
    mem_free(three);
    mem_free(before);
}

static void check_case(const struct groups *c, enum dtype dt)
{
    int64_t offset[MAX_GROUPS + 1] = {0};
    for (int g = 0; g < c->n; g++) offset[g + 1] = offset[g] + c->rows[g];
    struct job j = {.dt = dt, .shape = {c->n, offset, c->in, c->out}};
    j.x = case_random(dt, offset[c->n] * c->in, 1);
    j.y = case_random(dt, offset[c->n] * c->out, 2);
    j.w = case_random(dt, (int64_t)c->n * c->in * c->out, 3);
    for (int variant = 0; variant < 4; variant++) {
        j.op = variant < 3 ? (enum op)variant : BWD_X;
        j.accumulate = variant == 3;
        check(&j);
    }
    mem_free(j.x);
    mem_free(j.y);
    mem_free(j.w);
}

int main(void)
{
    for (int i = 0; i < N_CASES; i++) {
        check_case(&cases[i], DTYPE_F32);
        check_case(&cases[i], DTYPE_BF16);
    }
    EXPECT(mem_live() == 0, "%ld blocks left", mem_live());
    return test_end();
}
