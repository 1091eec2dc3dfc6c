/* The router's scores, choice and weights against a plain search, and the choices that went wrong
 * elsewhere: masked groups, ties, biased weights, NaN. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    struct router_shape shape;
    const float *logits, *bias;
    const int32_t *forced;
};

/* out: score [N, E], weight [N, K], expert [N, K] */
static void run(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    float *score = out, *weight = score + c->shape.N * c->shape.E;
    int32_t *expert = (int32_t *)(weight + c->shape.N * c->shape.K);
    backend_cpu.router_fwd(s, score, expert, weight, c->logits, c->bias, c->forced, &c->shape);
}

static size_t out_bytes(const struct router_shape *r)
{
    return (size_t)(r->N * (r->E + 2 * r->K)) * sizeof(float);
}

/* The largest value not yet taken, the first of equals; its value becomes NaN. */
static int take_best(float *value, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!isnan(value[i]) && (best < 0 || value[i] > value[best])) best = i;
    value[best] = NAN;
    return best;
}

/* The experts of one token from its F32 scores. */
static void naive_choice(const struct args *c, const float *score, int *expert)
{
    const struct router_shape *r = &c->shape;
    float value[256], copy[256], group[256];
    for (int e = 0; e < r->E; e++) value[e] = score[e] + (c->bias ? c->bias[e] : 0.0f);
    if (r->group != ROUTER_GROUP_NONE) {
        const int size = r->E / r->n_group;
        bool keep[256] = {false};
        for (int g = 0; g < r->n_group; g++) {
            memcpy(copy, value + g * size, (size_t)size * sizeof *copy);
            group[g] = value[g * size + take_best(copy, size)];
            if (r->group == ROUTER_GROUP_TOP2_SUM && size > 1)
                group[g] += value[g * size + take_best(copy, size)];
        }
        for (int k = 0; k < r->topk_group; k++) keep[take_best(group, r->n_group)] = true;
        for (int e = 0; e < r->E; e++)
            if (!keep[e / size]) value[e] = -INFINITY;
    }
    for (int k = 0; k < r->K; k++) expert[k] = take_best(value, r->E);
}

static void check_token(const struct args *c, int64_t n, const float *score, const float *weight,
                        const int32_t *expert)
{
    const struct router_shape *r = &c->shape;
    const float *l = c->logits + n * r->E;
    int want[256];
    double sum = 0, chosen = 0;

    for (int e = 0; e < r->E; e++) sum += exp((double)l[e]);
    for (int e = 0; e < r->E; e++) {
        const double x = exp((double)l[e]), s = r->score == ROUTER_SIGMOID ? x / (1 + x) : x / sum;
        /* exp within 1 ulp, a sum of at most 256 in F32, a division */
        EXPECT(fabs((double)score[e] - s) < 1e-6 * s, "score %.9g, not %.9g", (double)score[e], s);
    }
    naive_choice(c, score, want);
    for (int k = 0; k < r->K; k++) {
        EXPECT(expert[k] == want[k], "N=%ld E=%d token %ld choice %d: %d, not %d", (long)r->N, r->E,
               (long)n, k, expert[k], want[k]);
        chosen += (double)score[expert[k]];
    }
    for (int k = 0; k < r->K; k++) {
        const double w = (double)score[expert[k]] / (r->normalise ? chosen : 1) * (double)r->scale;
        EXPECT(fabs((double)weight[k] - w) <= 1e-6 * w, "weight %.9g, not %.9g", (double)weight[k],
               w);
    }
}

/* ties: logits and biases in steps of a half, so that many values are equal. */
static void check(const struct router_shape *r, bool biased, bool ties)
{
    float *logits = new_values(DTYPE_F32, r->N * r->E, "logits", 3);
    float *bias = new_values(DTYPE_F32, r->E, "bias", 1);
    for (int64_t i = 0; ties && i < r->N * r->E; i++) logits[i] = roundf(2 * logits[i]) / 2;
    for (int64_t i = 0; ties && i < r->E; i++) bias[i] = roundf(2 * bias[i]) / 2;
    const struct args c = {*r, logits, biased ? bias : NULL, NULL};

    float *score = run_repeatably("router_fwd", run, &c, out_bytes(r));
    const float *weight = score + r->N * r->E;
    const int32_t *expert = (const int32_t *)(weight + r->N * r->K);
    for (int64_t n = 0; n < r->N; n++)
        check_token(&c, n, score + n * r->E, weight + n * r->K, expert + n * r->K);
    free(logits), free(bias), free(score);
}

int main(void)
{
    static const struct router_shape shapes[] = {
        {0, 8, 2, ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1, 1, true, 1},
        {1, 1, 1, ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1, 1, true, 2.5f},
        {33, 20, 3, ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1, 1, false, 1},
        {40, 16, 4, ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 4, 2, true, 2.5f},
        {40, 8, 8, ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 8, 8, true, 2.5f},
        {257, 256, 8, ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 8, 4, true, 2.5f},
        {31, 66, 6, ROUTER_SOFTMAX, ROUTER_GROUP_NONE, 1, 1, false, 1},
        {257, 160, 6, ROUTER_SOFTMAX, ROUTER_GROUP_MAX, 8, 3, false, 16},
        {5, 64, 6, ROUTER_SOFTMAX, ROUTER_GROUP_TOP2_SUM, 1, 1, true, 1},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int how = 0; how < 4; how++) check(&shapes[i], how & 1, how & 2);
    return test_end();
}
