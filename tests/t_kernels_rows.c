/* Sorting by expert, gathering rows and combining them, against plain loops. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    int64_t N, M;
    int K, D, E;
    enum dtype dt;
    const int32_t *expert, *place, *order;
    const void *x, *rows, *add0, *add1;
    const float *weight;
    bool in_place; /* add1 is y itself */
};

/* out: count [E], order [M], place [M] */
static void run_sort(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    int64_t *count = out;
    int32_t *order = (int32_t *)(count + c->E);
    backend_cpu.sort_by_expert(s, order, order + c->M, count, c->expert, c->M, c->E);
}

static void run_gather(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    backend_cpu.gather_rows(s, out, c->x, c->order, c->K, c->dt, c->M, c->D);
}

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
    float *dweight = out;
    backend_cpu.combine_bwd(s, dweight + c->M, dweight, c->x, c->rows, c->place, c->weight, c->dt,
                            c->N, c->K, c->D);
}

/* Sorted, stable, each the inverse of the other, counts right: that is one order only. */
static void check_sort(const struct args *c, const int64_t *count)
{
    const int32_t *order = (const int32_t *)(count + c->E), *place = order + c->M;
    int64_t j = 0;
    for (int e = 0; e < c->E; e++) {
        int64_t n = 0;
        for (int64_t i = 0; i < c->M; i++) {
            if (c->expert[i] != e) continue;
            EXPECT(order[j] == i && place[i] == j, "row %ld of expert %d: order %d, place %d",
                   (long)i, e, order[j], place[i]);
            j++, n++;
        }
        EXPECT(count[e] == n, "count[%d] is %ld, not %ld", e, (long)count[e], (long)n);
    }
}

static void check_gather(const struct args *c)
{
    const size_t row = (size_t)c->D * dtype_bytes(c->dt);
    char *dst = run_repeatably("gather_rows", run_gather, c, (size_t)c->M * row);
    for (int64_t j = 0; j < c->M; j++) {
        const void *want = elem(c->x, c->dt, (int64_t)c->order[j] / c->K * c->D);
        EXPECT(memcmp(dst + j * (int64_t)row, want, row) == 0, "row %ld", (long)j);
    }
    free(dst);
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
    struct args c = {.N = N, .M = N * K, .K = K, .D = D, .E = E, .dt = dt};
    int32_t *expert = new_ints(c.M, "expert", 0, experts - 1);
    void *x = new_values(dt, N * D, "x", 1), *rows = new_values(dt, c.M * D, "rows", 1);
    void *add0 = new_values(dt, N * D, "add0", 1), *add1 = new_values(dt, N * D, "add1", 1);
    float *weight = new_values(DTYPE_F32, c.M, "weight", 1);
    c.expert = expert, c.x = x, c.rows = rows, c.weight = weight;
    int64_t *count = run_repeatably("sort_by_expert", run_sort, &c,
                                    (size_t)E * sizeof *count + 2 * (size_t)c.M * sizeof *expert);
    c.order = (const int32_t *)(count + E), c.place = c.order + c.M;
    check_sort(&c, count);
    check_gather(&c);
    check_combine(&c);
    check_combine_bwd(&c);
    c.add1 = add1;
    check_combine(&c);
    c.add0 = add0, c.weight = NULL;
    check_combine(&c);
    c.in_place = true;
    check_combine(&c);
    free(expert), free(x), free(rows), free(add0), free(add1), free(weight), free(count);
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
