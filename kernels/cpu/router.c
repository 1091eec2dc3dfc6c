/*
 * router.c - scores, choice and weights of the experts of every token, and the backward.
 *
 * Contract: kernels/backend.h. DeepSeek-V3 report 2.1.2, equations 12 to 16: the bias steers the
 * choice and never enters a weight.
 */
#include "kernels/cpu/block.h"
#include "kernels/cpu/topk.h"
#include "kernels/cpu/vexp.h"

#include "base/err.h"

#include <math.h>

static void score_sigmoid(float *score, const float *logit, int E)
{
#pragma omp simd
    for (int e = 0; e < E; e++) score[e] = 1.0f / (1.0f + vexp(-logit[e]));
}

static void score_softmax(float *score, const float *logit, int E)
{
    float max = -INFINITY, sum = 0;
    for (int e = 0; e < E; e++) max = logit[e] > max ? logit[e] : max;
#pragma omp simd reduction(+ : sum)
    for (int e = 0; e < E; e++) {
        score[e] = vexp(logit[e] - max);
        sum += score[e];
    }
#pragma omp simd
    for (int e = 0; e < E; e++) score[e] /= sum;
}

static float group_score(const float *value, int n, enum router_group kind)
{
    float first = -INFINITY, second = -INFINITY;
    for (int i = 0; i < n; i++) {
        const float lower = value[i] < first ? value[i] : first;
        first = value[i] > first ? value[i] : first;
        second = lower > second ? lower : second;
    }
    return kind == ROUTER_GROUP_MAX || n < 2 ? first : first + second;
}

/* Only experts of the topk_group best groups stay candidates. */
static void mask_groups(float *value, const struct router_shape *shape)
{
    const int n_group = shape->n_group, size = shape->E / n_group;
    float score[MAX_EXPERTS];
    int32_t kept[MAX_EXPERTS];
    bool keep[MAX_EXPERTS];

    for (int g = 0; g < n_group; g++) {
        score[g] = group_score(value + g * size, size, shape->group);
        keep[g] = false;
    }
    topk(kept, score, n_group, shape->topk_group);
    for (int k = 0; k < shape->topk_group; k++) keep[kept[k]] = true;
    for (int g = 0; g < n_group; g++)
        for (int i = 0; i < size && !keep[g]; i++) value[g * size + i] = -INFINITY;
}

/* Choose K experts by score + bias; false, and experts 0 .. K - 1, when one of these is NaN. */
static bool choose(int32_t *expert, const float *score, const float *bias,
                   const struct router_shape *shape)
{
    const int E = shape->E;
    float value[MAX_EXPERTS];
    int n_nan = 0;

    for (int e = 0; e < E; e++) {
        value[e] = bias ? score[e] + bias[e] : score[e];
        n_nan += value[e] != value[e];
    }
    if (n_nan > 0) {
        for (int k = 0; k < shape->K; k++) expert[k] = k;
        return false;
    }
    if (shape->group != ROUTER_GROUP_NONE && shape->topk_group < shape->n_group)
        mask_groups(value, shape);
    topk(expert, value, E, shape->K);
    return true;
}

static void weigh(float *weight, const float *score, const int32_t *expert,
                  const struct router_shape *shape)
{
    float sum = 0;
    for (int k = 0; k < shape->K; k++) sum += score[expert[k]];
    const float divisor = shape->normalise ? sum + ROUTER_SUM_EPS : 1.0f;
    for (int k = 0; k < shape->K; k++) weight[k] = score[expert[k]] / divisor * shape->scale;
}

static void check_limits(const struct router_shape *shape)
{
    CHECK(shape->E <= MAX_EXPERTS && shape->K <= shape->E,
          "router of %d experts, top %d: at most %d", shape->E, shape->K, MAX_EXPERTS);
}

void cpu_router_fwd(struct stream *s, float *score, int32_t *expert, float *weight,
                    const float *logits, const float *bias, const int32_t *forced,
                    const struct router_shape *shape)
{
    const int E = shape->E, K = shape->K, threads = block_threads(s, 8 * shape->N * E);
    check_limits(shape);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->N; n++) {
        float *score_n = score + n * E, *weight_n = weight + n * K;
        int32_t *expert_n = expert + n * K;
        if (shape->score == ROUTER_SIGMOID)
            score_sigmoid(score_n, logits + n * E, E);
        else
            score_softmax(score_n, logits + n * E, E);
        const bool ok = choose(expert_n, score_n, bias, shape);
        if (forced) memcpy(expert_n, forced + n * K, (size_t)K * sizeof *expert_n);
        weigh(weight_n, score_n, expert_n, shape);
        for (int k = 0; k < K && !ok; k++) weight_n[k] = NAN;
    }
}

/* dscore += through the weights: w_k = scale * s_k / S, S = sum of the chosen. */
static void weight_bwd(float *dscore, const float *dweight, const float *score,
                       const int32_t *expert, const struct router_shape *shape)
{
    float sum = 0, dot = 0;
    for (int k = 0; k < shape->K; k++) {
        sum += score[expert[k]];
        dot += dweight[k] * score[expert[k]];
    }
    const float divisor = shape->normalise ? sum + ROUTER_SUM_EPS : 1.0f;
    const float mean = shape->normalise ? dot / divisor : 0.0f;
    for (int k = 0; k < shape->K; k++)
        dscore[expert[k]] += shape->scale * (dweight[k] - mean) / divisor;
}

/* dscore += through p = s / S, S = sum over all experts. */
static void balance_bwd(float *dscore, const float *coef, const float *score, int E)
{
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (int e = 0; e < E; e++) {
        sum += score[e];
        dot += coef[e] * score[e];
    }
    const float divisor = sum + ROUTER_SUM_EPS, mean = dot / divisor;
#pragma omp simd
    for (int e = 0; e < E; e++) dscore[e] += (coef[e] - mean) / divisor;
}

static void score_bwd(float *dlogit, const float *dscore, const float *score,
                      const struct router_shape *shape)
{
    const int E = shape->E;
    if (shape->score == ROUTER_SIGMOID) {
#pragma omp simd
        for (int e = 0; e < E; e++) dlogit[e] = dscore[e] * score[e] * (1.0f - score[e]);
        return;
    }
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int e = 0; e < E; e++) dot += dscore[e] * score[e];
#pragma omp simd
    for (int e = 0; e < E; e++) dlogit[e] = score[e] * (dscore[e] - dot);
}

void cpu_router_bwd(struct stream *s, float *dlogits, const float *dweight, const float *score,
                    const int32_t *expert, const float *coef, const struct sequence_span *span,
                    const struct router_shape *shape)
{
    const int E = shape->E, K = shape->K, threads = block_threads(s, 4 * shape->N * E);
    check_limits(shape);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->N; n++) {
        float dscore[MAX_EXPERTS];
        const float *score_n = score + n * E;
        memset(dscore, 0, (size_t)E * sizeof *dscore);
        weight_bwd(dscore, dweight + n * K, score_n, expert + n * K, shape);
        if (coef) balance_bwd(dscore, coef + (span->first + n) / span->T * E, score_n, E);
        score_bwd(dlogits + n * E, dscore, score_n, shape);
    }
}
