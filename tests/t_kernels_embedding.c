/* Embedding rows of a part of the vocabulary, ids outside it, and the gradient of repeated ids. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    int64_t N;
    int D, row0, n_rows;
    enum dtype dt;
    const void *table, *dx;
    const float *dtable0;
    const int32_t *id;
};

static void run_fwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    backend_cpu.embedding_fwd(s, out, c->table, c->id, c->dt, c->N, c->D, c->row0, c->n_rows);
}

static void run_bwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    memcpy(out, c->dtable0, (size_t)(c->n_rows * c->D) * sizeof *c->dtable0);
    backend_cpu.embedding_bwd(s, out, c->dx, c->id, c->dt, c->N, c->D, c->row0, c->n_rows);
}

static bool here(const struct args *c, int64_t n)
{
    return c->id[n] >= c->row0 && c->id[n] < c->row0 + c->n_rows;
}

static void check_fwd(const struct args *c, const void *x)
{
    for (int64_t i = 0; i < c->N * c->D; i++) {
        const int64_t n = i / c->D, row = here(c, n) ? c->id[n] - c->row0 : 0;
        const double want = here(c, n) ? get(c->table, c->dt, row * c->D + i % c->D) : 0;
        if (get(x, c->dt, i) == want) continue;
        EXPECT(false, "token %ld (id %d): %g, not %g", (long)n, c->id[n], get(x, c->dt, i), want);
    }
}

/* In F32 and in token order: the same bits. */
static void check_bwd(const struct args *c, const float *dtable)
{
    const size_t bytes = (size_t)(c->n_rows * c->D) * sizeof *dtable;
    float *want = new_bytes(bytes);
    memcpy(want, c->dtable0, bytes);
    for (int64_t n = 0; n < c->N; n++)
        for (int d = 0; d < c->D && here(c, n); d++)
            want[(c->id[n] - c->row0) * c->D + d] += (float)get(c->dx, c->dt, n * c->D + d);
    EXPECT(memcmp(dtable, want, bytes) == 0, "N=%ld D=%d: other sums", (long)c->N, c->D);
    free(want);
}

static void check(int64_t N, int D, int row0, int n_rows, enum dtype dt)
{
    void *table = new_values(dt, n_rows * D, "table", 1), *dx = new_values(dt, N * D, "dx", 1);
    float *dtable0 = new_values(DTYPE_F32, n_rows * D, "dtable", 1);
    int32_t *id = new_ints(N, "id", -1, row0 + n_rows + 2); /* below, in and above the part */
    const struct args c = {.N = N,
                           .D = D,
                           .row0 = row0,
                           .n_rows = n_rows,
                           .dt = dt,
                           .table = table,
                           .dx = dx,
                           .dtable0 = dtable0,
                           .id = id};
    const size_t bytes = (size_t)(N * D) * dtype_bytes(dt);
    void *x = run_repeatably("embedding_fwd", run_fwd, &c, bytes);
    float *dtable =
        run_repeatably("embedding_bwd", run_bwd, &c, (size_t)(n_rows * D) * sizeof *dtable);
    check_fwd(&c, x);
    check_bwd(&c, dtable);
    free(table), free(dx), free(dtable0), free(id), free(x), free(dtable);
}

/* sum of dx * x of the table in double */
static double loss(const double *table, const void *p)
{
    const struct args *c = p;
    double sum = 0;
    for (int64_t i = 0; i < c->N * c->D; i++)
        if (here(c, i / c->D))
            sum += get(c->dx, c->dt, i) * table[(c->id[i / c->D] - c->row0) * c->D + i % c->D];
    return sum;
}

static void check_differences(void)
{
    enum { N = 9, D = 5, ROWS = 4 };
    const int32_t id[N] = {2, 0, 2, 5, 4, 1, 2, -1, 4};
    float *table = new_values(DTYPE_F32, ROWS * D, "table", 1), zero[ROWS * D] = {0};
    float *dx = new_values(DTYPE_F32, N * D, "dx", 1);
    double *at = new_doubles(table, DTYPE_F32, ROWS * D);
    const struct args c = {.N = N,
                           .D = D,
                           .row0 = 1,
                           .n_rows = ROWS,
                           .dt = DTYPE_F32,
                           .dx = dx,
                           .dtable0 = zero,
                           .id = id};
    float *grad = run_repeatably("embedding_bwd", run_bwd, &c, ROWS * D * sizeof *grad);
    const double error = difference_error(loss, at, &c, ROWS * D, grad, DTYPE_F32);
    EXPECT(error < 1e-6, "finite differences: %.2e", error); /* F32 sums of at most 3 */
    free(table), free(dx), free(at), free(grad);
}

int main(void)
{
    for (int i = 0; i < N_ROW_SHAPES; i++)
        for (int t = 0; t < 2; t++) {
            check(row_shapes[i].N, row_shapes[i].D, 0, 7, float_types[t]);
            check(row_shapes[i].N, row_shapes[i].D, 5, 3, float_types[t]);
            check(row_shapes[i].N, row_shapes[i].D, 4, 0,
                  float_types[t]); /* no rows on this rank */
        }
    check_differences();
    return test_end();
}
