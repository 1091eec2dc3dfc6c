/* The router's backward, through the weights and through the sequence-wise balance loss, against
 * finite differences of the same in double. */
// TEST ranks=1 timeout=30
#include "kernels.h"

enum { B = 3, T = 5, E = 10, K = 3, FIRST = 3, N = 9 }; /* tokens 3 .. 11 of 15: parts of all B */

static const float BALANCE = 0.7f;

struct args {
    struct router_shape shape;
    struct sequence_span span;
    bool balanced;
    const float *dweight, *score, *coef;
    const int32_t *expert, *n_top;
};

static void run_fwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    float *score = out, *weight = score + N * E;
    backend_cpu.router_fwd(s, score, (int32_t *)(weight + N * K), weight, c->score, NULL, NULL,
                           &c->shape);
}

static void run_bwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    backend_cpu.router_bwd(s, out, c->dweight, c->score, c->expert, c->balanced ? c->coef : NULL,
                           c->balanced ? &c->span : NULL, &c->shape);
}

static void token_scores(const struct args *c, const double *logit, double *score)
{
    double sum = 0;
    for (int e = 0; e < E; e++) sum += exp(logit[e]);
    for (int e = 0; e < E; e++)
        score[e] =
            c->shape.score == ROUTER_SIGMOID ? 1 / (1 + exp(-logit[e])) : exp(logit[e]) / sum;
}

/* dweight * weight of the chosen, plus the balance loss with its counts fixed. */
static double loss(const double *logits, const void *p)
{
    const struct args *c = p;
    double total = 0;
    for (int n = 0; n < N; n++) {
        double s[E], all = 0, chosen = 0;
        token_scores(c, logits + n * E, s);
        for (int e = 0; e < E; e++) all += s[e];
        for (int k = 0; k < K; k++) chosen += s[c->expert[n * K + k]];
        for (int k = 0; k < K; k++)
            total += (double)c->dweight[n * K + k] * (double)c->shape.scale *
                     s[c->expert[n * K + k]] / (c->shape.normalise ? chosen : 1);
        for (int e = 0; c->balanced && e < E; e++) {
            const double f = (double)E / (K * T) * c->n_top[(FIRST + n) / T * E + e];
            total += (double)BALANCE * f * s[e] / all / T;
        }
    }
    return total;
}

static void check(enum router_score kind, bool normalise, bool balanced)
{
    struct args c = {.shape = {N, E, K, kind, ROUTER_GROUP_NONE, 1, 1, normalise, 2.5f},
                     .span = {FIRST, B, T},
                     .balanced = balanced};
    float *logits = new_values(DTYPE_F32, N * E, "logits", 2), coef[B * E];
    float *dweight = new_values(DTYPE_F32, N * K, "dweight", 1), p_sum[B * E];
    int32_t *n_top = new_ints(B * E, "n_top", 0, T); /* any counts: they are constants here */
    double *at = new_doubles(logits, DTYPE_F32, N * E), logged = 0;
    struct stream *s = backend_cpu.stream_create(1);

    memset(p_sum, 0, sizeof p_sum);
    backend_cpu.balance_loss(s, &logged, coef, p_sum, n_top, B, T, E, K, BALANCE);
    c.score = logits, c.dweight = dweight, c.n_top = n_top, c.coef = coef;
    float *score = run_repeatably("router_fwd", run_fwd, &c, (N * E + 2 * N * K) * sizeof *score);
    c.score = score;
    c.expert = (const int32_t *)(score + N * E + N * K);
    float *dlogits = run_repeatably("router_bwd", run_bwd, &c, N * E * sizeof *dlogits);
    const double error = difference_error(loss, at, &c, N * E, dlogits, DTYPE_F32);
    /* F32 scores and differences of sums that nearly cancel */
    EXPECT(error < 2e-6, "score %d, normalise %d, balance %d: %.2e", kind, normalise, balanced,
           error);
    free(logits), free(dweight), free(n_top), free(at), free(score), free(dlogits);
    backend_cpu.stream_destroy(s);
}

int main(void)
{
    for (int how = 0; how < 8; how++)
        check(how & 1 ? ROUTER_SOFTMAX : ROUTER_SIGMOID, how & 2, how & 4);
    return test_end();
}
