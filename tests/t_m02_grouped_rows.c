/* The grouped products read and write nothing beyond their operands, also where groups or all of
 * them have no rows, and are what a plain loop and one linear call per group give. */
// TEST ranks=1 timeout=30
#include "kernel_case.h"

enum { MAX_GROUPS = 9 };
static const struct groups {
    int n, in, out;
    int64_t rows[MAX_GROUPS];
} cases[] = {
    {8, 33, 17, {0, 0, 5, 0, 1, 0, 0, 0}},
    {8, 16, 8, {0}},
    {8, 8, 24, {0, 0, 0, 0, 0, 0, 0, 7}},
    {3, 64, 96, {300, 0, 0}},
    {8, 40, 72, {44, 1, 0, 32, 31, 33, 7, 64}},
    {1, 1, 1, {5}},
    {0, 8, 8, {0}},
    {9, 20, 1600, {3, 0, 1, 257, 1200, 0, 2, 1, 0}},
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

/* Element i of what comes to the result's earlier value, and the sum of the products' sizes. */
static double plain(const struct job *j, int64_t i, double *size)
{
    const int64_t in = j->shape.in, out = j->shape.out, *offset = j->shape.offset;
    const int64_t row = j->op == FWD ? i / out : i / in; /* of x or y */
    int64_t g = j->op == BWD_W ? i / (in * out) : 0, n = j->op == FWD ? in : out;
    while (j->op != BWD_W && row >= offset[g + 1]) g++;
    if (j->op == BWD_W) n = offset[g + 1] - offset[g];
    double sum = *size = 0;
    for (int64_t t = 0; t < n; t++) {
        int64_t o = t, k = i % in, r = row; /* BWD_X */
        if (j->op == FWD) o = i % out, k = t;
        if (j->op == BWD_W) o = i / in % out, r = offset[g] + t;
        const double a =
            j->op == FWD ? case_get(j->x, j->dt, r * in + k) : case_get(j->y, j->dt, r * out + o);
        const double b = j->op == BWD_W ? case_get(j->x, j->dt, r * in + k)
                                        : case_get(j->w, j->dt, (g * out + o) * in + k);
        sum += a * b;
        *size += fabs(a * b);
    }
    return sum;
}

/* 1e-6 of the products: F32 sums of up to 1600 terms; and the one rounding of a BF16 result. A
 * large result is looked at here and there. */
static void check_plain(const struct job *j, const void *got, const void *before, enum dtype dt,
                        int64_t n)
{
    const bool adds = j->op == BWD_W || j->accumulate;
    for (int64_t i = 0; i < n; i += n / 5000 + 1) {
        double size;
        const double had = adds ? case_get(before, dt, i) : 0, want = had + plain(j, i, &size);
        const double rounding = dt == DTYPE_BF16 ? 0x1p-8 * fabs(want) : 0;
        EXPECT(fabs(case_get(got, dt, i) - want) <= 1e-6 * (size + fabs(had)) + rounding,
               "op %d %s element %lld: %.9g, expected %.9g", (int)j->op, dtype_name(j->dt),
               (long long)i, case_get(got, dt, i), want);
    }
}

static void check(const struct job *j)
{
    const int64_t rows = j->shape.offset[j->shape.n_groups];
    const int64_t n = j->op == FWD     ? rows * j->shape.out
                      : j->op == BWD_X ? rows * j->shape.in
                                       : (int64_t)j->shape.n_groups * j->shape.in * j->shape.out;
    const enum dtype dt = j->op == BWD_W ? DTYPE_F32 : j->dt;
    void *const before = case_random(dt, n, 4);
    for (int64_t i = 0; j->op != BWD_W && !j->accumulate && i < n; i++)
        case_set(before, dt, i, NAN);
    void *const want = case_guarded(before, dt, n), *const got = case_guarded(before, dt, n);
    void *const three = case_guarded(before, dt, n);
    run_linear(j, want);
    run_grouped(j, got, 1);
    run_grouped(j, three, 3);
    EXPECT(case_same_bits(got, want, dt, n), "op %d, %d groups, accumulate %d", (int)j->op,
           j->shape.n_groups, j->accumulate);
    EXPECT(case_same_bits(got, three, dt, n), "op %d: three threads differ", (int)j->op);
    check_plain(j, got, before, dt, n);
    mem_free(before);
    case_free_guarded(want);
    case_free_guarded(got);
    case_free_guarded(three);
}

static void check_case(const struct groups *c, enum dtype dt)
{
    int64_t offset[MAX_GROUPS + 1] = {0};
    for (int g = 0; g < c->n; g++) offset[g + 1] = offset[g] + c->rows[g];
    struct job j = {.dt = dt, .shape = {c->n, offset, c->in, c->out}};
    j.x = case_random_guarded(dt, offset[c->n] * c->in, 1);
    j.y = case_random_guarded(dt, offset[c->n] * c->out, 2);
    j.w = case_random_guarded(dt, (int64_t)c->n * c->in * c->out, 3);
    for (int variant = 0; variant < 4; variant++) {
        j.op = variant < 3 ? (enum op)variant : BWD_X;
        j.accumulate = variant == 3;
        check(&j);
    }
    case_free_guarded(j.x);
    case_free_guarded(j.y);
    case_free_guarded(j.w);
}

int main(void)
{
    for (int i = 0; i < N_CASES; i++) {
        check_case(&cases[i], DTYPE_F32);
        check_case(&cases[i], DTYPE_BF16);
    }
    return test_end();
}
