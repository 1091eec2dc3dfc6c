/* Sorting by expert and gathering rows, against plain loops. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    int64_t N, M;
    int K, D, E;
    enum dtype dt;
    const int32_t *expert, *order;
    const void *x;
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

/* experts: ids are drawn from the first so many of E; the others get nothing. */
static void check(int64_t N, int K, int D, int E, int experts, enum dtype dt)
{
    struct args c = {.N = N, .M = N * K, .K = K, .D = D, .E = E, .dt = dt};
    int32_t *expert = new_ints(c.M, "expert", 0, experts - 1);
    void *x = new_values(dt, N * D, "x", 1);
    c.expert = expert, c.x = x;
    int64_t *count = run_repeatably("sort_by_expert", run_sort, &c,
                                    (size_t)E * sizeof *count + 2 * (size_t)c.M * sizeof *expert);
    c.order = (const int32_t *)(count + E);
    check_sort(&c, count);
    check_gather(&c);
    free(expert), free(x), free(count);
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
