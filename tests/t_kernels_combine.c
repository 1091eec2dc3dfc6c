/* Combining the rows of the experts, forward and backward, against plain loops, also in place. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    int64_t N, M;
    int K, D;
    enum dtype dt;
    const int32_t *place;
    const void *x, *rows, *add0, *add1;
    const float *weight;
    bool in_place; /* forward: add1 is y itself; backward: drows are rows */
};

static void run_combine(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    if (c->in_place) memcpy(out, c->add1, (size_t)(c->N * c->D) * dtype_bytes(c->dt));
    backend_cpu.combine_fwd(s, out, c->rows, c->place, c->weight, c->add0,
                            c->in_place ? out : c->add1, c->dt, c->N, c->K, c->D);
}

/* out: dweight [M], drows [M, D] */
static void run_combine_bwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    float *dweight = out, *drows = dweight + c->M;
    if (c->in_place) memcpy(drows, c->rows, (size_t)(c->M * c->D) * dtype_bytes(c->dt));
    backend_cpu.combine_bwd(s, drows, dweight, c->x, c->in_place ? drows : c->rows, c->place,
                            c->weight, c->dt, c->N, c->K, c->D);
}

static void check_combine(const struct args *c)
{
    const int64_t n_y = c->N * c->D;
    double *want = new_bytes((size_t)n_y * sizeof *want);
    for (int64_t i = 0; i < n_y; i++) {
        const int64_t n = i / c->D, d = i % c->D;
        want[i] = (c->add0 ? get(c->add0, c->dt, i) : 0) + (c->add1 ? get(c->add1, c->dt, i) : 0);
        for (int64_t k = n * c->K; k < (n + 1) * c->K; k++)
            want[i] += (c->weight ? (double)c->weight[k] : 1) *
                       get(c->rows, c->dt, c->place[k] * (int64_t)c->D + d);
    }
    void *y = run_repeatably("combine_fwd", run_combine, c, (size_t)n_y * dtype_bytes(c->dt));
    const double error = max_error(y, c->dt, want, n_y);
    EXPECT(error < half_ulp(c->dt) + 2e-6 /* F32 terms may cancel */, "N=%ld K=%d D=%d %s: %.1e",
           (long)c->N, c->K, c->D, dtype_name(c->dt), error);
    free(want), free(y);
}

static void check_combine_bwd(const struct args *c)
{
    double *want = new_bytes((size_t)(c->M * c->D) * sizeof *want);
    double *want_dweight = new_bytes((size_t)c->M * sizeof *want_dweight);
    for (int64_t i = 0; i < c->M; i++) {
        const int64_t row = c->place[i] * (int64_t)c->D, n = i / c->K;
        want_dweight[i] = 0;
        for (int d = 0; d < c->D; d++) {
            const double dy = get(c->x, c->dt, n * c->D + d);
            want[row + d] = (double)c->weight[i] * dy;
            want_dweight[i] += dy * get(c->rows, c->dt, row + d);
        }
    }
    const size_t bytes = (size_t)c->M * (sizeof(float) + (size_t)c->D * dtype_bytes(c->dt));
    float *dweight = run_repeatably("combine_bwd", run_combine_bwd, c, bytes);
    const double e_rows = max_error(dweight + c->M, c->dt, want, c->M * c->D);
    const double e_weight = max_difference(dweight, DTYPE_F32, want_dweight, c->M) / sqrt(c->D);
    /* a product rounded once; F32 sums, in any order, of up to 512 products below 1 */
    EXPECT(e_rows < half_ulp(c->dt) + 1e-7 && e_weight < 3e-6, "bwd N=%ld D=%d %s: %.1e, %.1e",
           (long)c->N, c->D, dtype_name(c->dt), e_rows, e_weight);
    free(want), free(want_dweight), free(dweight);
}

/* experts: ids are drawn from the first so many of E; the others get nothing. */
static void check(int64_t N, int K, int D, int E, int experts, enum dtype dt)
{
    struct args c = {.N = N, .M = N * K, .K = K, .D = D, .dt = dt};
    int32_t *expert = new_ints(c.M, "expert", 0, experts - 1);
    int32_t *order = new_bytes(2 * (size_t)c.M * sizeof *order);
    int64_t *count = new_bytes((size_t)E * sizeof *count);
    void *x = new_values(dt, N * D, "x", 1), *rows = new_values(dt, c.M * D, "rows", 1);
    void *add0 = new_values(dt, N * D, "add0", 1), *add1 = new_values(dt, N * D, "add1", 1);
    float *weight = new_values(DTYPE_F32, c.M, "weight", 1);
    struct stream *s = backend_cpu.stream_create(1);
    backend_cpu.sort_by_expert(s, order, order + c.M, count, expert, c.M, E);
    backend_cpu.stream_destroy(s);
    c.place = order + c.M, c.x = x, c.rows = rows, c.weight = weight;
    for (int in_place = 0; in_place < 2; in_place++) {
        c.in_place = in_place;
        check_combine_bwd(&c);
    }
    c.in_place = false;
    check_combine(&c);
    c.add1 = add1;
    check_combine(&c);
    c.add0 = add0, c.weight = NULL;
    check_combine(&c);
    c.in_place = true;
    check_combine(&c);
    free(expert), free(order), free(count), free(x), free(rows), free(add0), free(add1);
    free(weight);
}

int main(void)
{
    for (int i = 0; i < N_ROW_SHAPES; i++)
        for (int t = 0; t < 2; t++) {
            check(row_shapes[i].N, 1, row_shapes[i].D, 1, 1, float_types[t]);
            check(row_shapes[i].N, 3, row_shapes[i].D, 10, 7, float_types[t]);
            check(row_shapes[i].N, 8, row_shapes[i].D, 16, 16, float_types[t]);
        }
    return test_end();
}
