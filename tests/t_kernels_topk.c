/* The search for the K largest: order, ties, the two zeros, infinities, K = E, and NaN. */
// TEST ranks=1 timeout=30
#include "kernels.h"
#include "kernels/cpu/topk.h"

/* id must be the first K of the ids sorted by (value descending, id ascending). */
static void check(const float *value, int E, int K, const char *what)
{
    int32_t id[64];
    memset(id, 0xFF, sizeof id);
    topk(id, value, E, K);
    for (int k = 0; k < K; k++) {
        int before = 0; /* ids that come before id[k] */
        EXPECT(id[k] >= 0 && id[k] < E, "%s E=%d K=%d: id %d", what, E, K, id[k]);
        if (id[k] < 0 || id[k] >= E) return;
        for (int e = 0; e < E; e++)
            before += value[e] > value[id[k]] || (value[e] == value[id[k]] && e < id[k]);
        EXPECT(before == k, "%s E=%d K=%d: id %d is number %d, not %d", what, E, K, id[k], before,
               k);
    }
}

int main(void)
{
    for (int E = 1; E <= 40; E++)
        for (int K = 0; K <= E; K += K < 8 ? 1 : 7) {
            float *value = new_values(DTYPE_F32, E, "value", 2);
            check(value, E, K, "distinct");
            for (int e = 0; e < E; e++) value[e] = roundf(value[e]);
            check(value, E, K, "ties");
            for (int e = 0; e < E; e++) value[e] = e % 3 ? -INFINITY : value[e];
            check(value, E, K, "masked");
            for (int e = 0; e < E; e++) value[e] = e % 2 ? 0.0f : -0.0f;
            check(value, E, K, "two zeros");
            free(value);
        }

    float broken[10];
    int32_t id[10];
    bool seen[10] = {false};
    for (int e = 0; e < 10; e++) broken[e] = e % 2 ? NAN : -NAN;
    topk(id, broken, 10, 10);
    for (int k = 0; k < 10; k++) {
        EXPECT(id[k] >= 0 && id[k] < 10 && !seen[id[k]], "NaN: id %d", id[k]);
        if (id[k] >= 0 && id[k] < 10) seen[id[k]] = true;
    }
    return test_end();
}
