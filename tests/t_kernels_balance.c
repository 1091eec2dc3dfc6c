/* Balance statistics, loss and bias update against plain loops and numbers known beforehand. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    struct router_shape shape;
    struct sequence_span span;
    const float *score;
};

/* out: p_sum [B, E], n_top [B, E] */
static void run(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    float *p_sum = out;
    backend_cpu.balance_stats(s, p_sum, (int32_t *)(p_sum + c->span.B * c->shape.E), c->score,
                              &c->span, &c->shape);
}

/* The group limits of the shape must not matter here. */
static void check_stats(int64_t N, int E, int K, int64_t first, int64_t B, int T)
{
    const struct router_shape shape = {
        N, E, K, ROUTER_SIGMOID, E % 4 ? ROUTER_GROUP_NONE : ROUTER_GROUP_TOP2_SUM, 4, 1, true, 1};
    float *score = new_values(DTYPE_F32, N * E, "score", 0.5);
    for (int64_t i = 0; i < N * E; i++) score[i] = roundf(score[i] * 16) / 16 + 0.5625f; /* ties */
    const struct args c = {shape, {first, B, T}, score};
    const size_t n_stats = (size_t)(B * E);
    double *want_p = new_bytes(n_stats * sizeof *want_p);
    int32_t *want_top = new_bytes(n_stats * sizeof *want_top);

    memset(want_p, 0, n_stats * sizeof *want_p);
    memset(want_top, 0, n_stats * sizeof *want_top);
    for (int64_t n = 0; n < N; n++) {
        const float *s = score + n * E;
        const int64_t at = (first + n) / T * E;
        double sum = 0;
        for (int e = 0; e < E; e++) sum += (double)s[e];
        for (int e = 0; e < E; e++) {
            int better = 0; /* experts before this one in the order of choice */
            for (int o = 0; o < E; o++) better += s[o] > s[e] || (s[o] == s[e] && o < e);
            want_top[at + e] += better < K;
            want_p[at + e] += (double)s[e] / sum;
        }
    }
    float *p_sum = run_repeatably("balance_stats", run, &c, n_stats * 2 * sizeof *p_sum);
    const double error = max_error(p_sum, DTYPE_F32, want_p, (int64_t)n_stats);
    EXPECT(error < 2e-6, "N=%ld E=%d: p_sum error %.1e", (long)N, E, error); /* F32 sums over T */
    EXPECT(memcmp(p_sum + n_stats, want_top, n_stats * sizeof *want_top) == 0, "N=%ld E=%d: n_top",
           (long)N, E);
    free(score), free(want_p), free(want_top), free(p_sum);
}

/* Every score ties: sum over i of f_i P_i is 1, so the loss is exactly the weight, the same for
 * eight sequences at once, in pairs, or one by one, whose mean is taken by the weight. */
static void check_uniform(struct stream *s)
{
    enum { E = 16, K = 4, T = 8 };
    const float alpha = 1e-4f;
    float score[8 * T * E], p_sum[8 * E], coef[8 * E];
    int32_t n_top[8 * E];
    for (int i = 0; i < 8 * T * E; i++) score[i] = 0.5f;
    for (int B = 1; B <= 8; B *= 2) {
        const struct router_shape shape = {
            (int64_t)B * T, E, K, ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1, 1, true, 1};
        const struct sequence_span span = {0, B, T};
        double loss = 0;
        for (int cut = 0; cut < 8 / B; cut++) {
            backend_cpu.balance_stats(s, p_sum, n_top, score, &span, &shape);
            backend_cpu.balance_loss(s, &loss, coef, p_sum, n_top, B, T, E, K, alpha / 8);
        }
        EXPECT(loss == (double)alpha, "cut into %d: %.17g", B, loss);
    }
    for (int e = 0; e < E; e++) {
        const double want = e < K ? (double)alpha / 8 * E / K / T : 0;
        EXPECT(coef[e] == (float)want, "coef[%d] %g, not %g", e, (double)coef[e], want);
    }
}

/* Steps by the sign of the surplus, however small (t_n10_exact_counts.c has sums of counts). */
static void check_bias(struct stream *s)
{
    enum { E = 4 };
    const float speed = 0.001f;
    const int64_t total[E] = {40840, 40841, 40841, 40841};
    int64_t count[E];
    float bias[E] = {0}, centred[E] = {0}, level[E] = {0};

    backend_cpu.bias_update(s, bias, total, E, speed, false);
    backend_cpu.bias_update(s, centred, total, E, speed, true);
    EXPECT(bias[0] == speed, "first expert moved by %g", (double)bias[0]);
    for (int e = 1; e < E; e++) EXPECT(bias[e] == -speed, "expert %d: %g", e, (double)bias[e]);
    /* steps +1 -1 -1 -1 have the mean -1/2 */
    EXPECT(centred[0] == 1.5f * speed && centred[1] == -0.5f * speed, "centred %g %g",
           (double)centred[0], (double)centred[1]);

    for (int e = 0; e < E; e++) count[e] = (int64_t)1 << 40;
    backend_cpu.bias_update(s, level, count, E, speed, false);
    for (int e = 0; e < E; e++) EXPECT(level[e] == 0, "equal counts moved %g", (double)level[e]);
    count[2]++;
    backend_cpu.bias_update(s, level, count, E, speed, false);
    EXPECT(level[0] == speed && level[2] == -speed, "one of 2^40: %g %g", (double)level[0],
           (double)level[2]);
}

int main(void)
{
    struct stream *s = backend_cpu.stream_create(1);
    check_stats(0, 8, 2, 0, 1, 4);
    check_stats(1, 1, 1, 0, 1, 1);
    check_stats(9, 20, 3, 3, 3, 5);
    check_stats(50, 16, 4, 20, 4, 64); /* sequences 1 and 4 have no tokens here */
    check_stats(257, 130, 6, 1, 2, 129);
    check_uniform(s);
    check_bias(s);
    backend_cpu.stream_destroy(s);
    return test_end();
}
