/* The router's rules one by one, each with numbers that tell a wrong rule from the right one. */
// TEST ranks=1 timeout=30
#include "kernels.h"

enum { MAX_E = 32 };

static struct stream *stream;
static float score[MAX_E], weight[MAX_E];
static int32_t expert[MAX_E];

static void route(const struct router_shape *shape, const float *logits, const float *bias,
                  const int32_t *forced)
{
    memset(score, 0xFF, sizeof score);
    memset(weight, 0xFF, sizeof weight);
    memset(expert, 0xFF, sizeof expert);
    backend_cpu.router_fwd(stream, score, expert, weight, logits, bias, forced, shape);
}

/* Equal logits: equal scores to the bit whatever their place in the row, and the lowest ids. */
static void check_ties(void)
{
    for (int E = 1; E <= MAX_E; E++) {
        const int K = E < 4 ? E : 4;
        for (int kind = 0; kind < 2; kind++) {
            const struct router_shape shape = {
                1, E, K, kind ? ROUTER_SOFTMAX : ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1, 1, true, 1};
            float logits[MAX_E];
            for (int e = 0; e < E; e++) logits[e] = 0.3f;
            route(&shape, logits, NULL, NULL);
            for (int e = 1; e < E; e++) EXPECT(score[e] == score[0], "E=%d score %d", E, e);
            for (int k = 0; k < K; k++) EXPECT(expert[k] == k, "E=%d choice %d", E, expert[k]);
        }
    }
}

/* The same bias for every expert changes no weight, though it decides no choice. */
static void check_bias_not_in_weight(void)
{
    const struct router_shape shape = {1, 8,    3,   ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1,
                                       1, true, 2.5f};
    const float logits[8] = {0.1f, -2, 1.5f, -1, 0.7f, -3, 2.5f, -0.5f};
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float unbiased[3];
    route(&shape, logits, NULL, NULL);
    memcpy(unbiased, weight, sizeof unbiased);
    EXPECT(expert[0] == 6 && expert[1] == 2 && expert[2] == 4, "%d %d %d", expert[0], expert[1],
           expert[2]);
    route(&shape, logits, ones, NULL);
    EXPECT(memcmp(unbiased, weight, sizeof unbiased) == 0, "weight %.9g, not %.9g",
           (double)weight[0], (double)unbiased[0]);

    /* a bias that decides the choice: the weight is the score, 1 / (1 + e^3), of expert 5 */
    const float only5[8] = {0, 0, 0, 0, 0, 1000, 0, 0};
    const struct router_shape top1 = {1, 8, 1, ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1, 1, false, 1};
    route(&top1, logits, only5, NULL);
    EXPECT(expert[0] == 5 && fabs((double)weight[0] - 1 / (1 + exp(3))) < 1e-8, "expert %d: %g",
           expert[0], (double)weight[0]);
}

/* A NaN anywhere in a token's logits shows in its weights, and its experts are still valid. */
static void check_nan(void)
{
    const struct router_shape shape = {1, 16,   4,   ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 4,
                                       2, true, 2.5f};
    const int32_t forced[4] = {9, 3, 1, 12};
    for (int bad = 0; bad < 16; bad++) {
        float logits[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        logits[bad] = NAN;
        route(&shape, logits, NULL, NULL);
        for (int k = 0; k < 4; k++)
            EXPECT(expert[k] == k && isnan(weight[k]), "NaN at %d: expert %d, weight %g", bad,
                   expert[k], (double)weight[k]);
        route(&shape, logits, NULL, forced);
        for (int k = 0; k < 4; k++)
            EXPECT(expert[k] == forced[k] && isnan(weight[k]), "forced, NaN at %d", bad);
    }
}

/* Forced experts keep their order and get the weights of their own scores. */
static void check_forced(void)
{
    const struct router_shape shape = {1, 8,    2,   ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1,
                                       1, true, 2.0f};
    const float logits[8] = {0, 0, 0, 0, 0, 0, 5, 5}, bias[8] = {7, 0, 0, 0, 0, 0, 0, 0};
    const int32_t forced[2] = {3, 1};
    route(&shape, logits, bias, forced);
    EXPECT(expert[0] == 3 && expert[1] == 1, "%d %d", expert[0], expert[1]);
    EXPECT(weight[0] == 1.0f && weight[1] == 1.0f, "%g %g", (double)weight[0], (double)weight[1]);
}

/* All scores underflow: the weights are 0, not 0 / 0. */
static void check_underflow(void)
{
    const struct router_shape shape = {1, 4,    2,   ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1,
                                       1, true, 2.5f};
    const float logits[4] = {-1e4f, -1e4f, -1e4f, -1e4f}, dweight[2] = {1, 1};
    float dlogits[4];
    route(&shape, logits, NULL, NULL);
    EXPECT(weight[0] == 0 && weight[1] == 0, "%g %g", (double)weight[0], (double)weight[1]);
    backend_cpu.router_bwd(stream, dlogits, dweight, score, expert, NULL, NULL, &shape);
    for (int e = 0; e < 4; e++) EXPECT(dlogits[e] == 0, "gradient %g", (double)dlogits[e]);
}

int main(void)
{
    stream = backend_cpu.stream_create(1);
    check_ties();
    check_bias_not_in_weight();
    check_nan();
    check_forced();
    check_underflow();
    backend_cpu.stream_destroy(stream);
    return test_end();
}
