/*
 * balance.c - the two balancing rules: the sequence-wise loss (DeepSeek-V3 report, equations 17 to
 * 20) and the selection bias, which follows from exact counts.
 *
 * Contract: kernels/backend.h.
 */
#include "kernels/cpu/block.h"
#include "kernels/cpu/topk.h"

#include "base/err.h"

enum { COLUMNS = 64 }; /* experts whose p_sum one thread adds up */

static float row_sum(const float *x, int n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}

static void count_top(int32_t *n_top, const float *score, const struct router_shape *shape)
{
    int32_t id[MAX_EXPERTS];
    topk(id, score, shape->E, shape->K);
    for (int k = 0; k < shape->K; k++) {
#pragma omp atomic /* integers: exact in any order */
        n_top[id[k]]++;
    }
}

/* First the tokens' sums and choices, tokens over the threads, then p_sum, experts over the
 * threads: so each element of p_sum is summed in token order by one thread. */
void cpu_balance_stats(struct stream *s, float *p_sum, int32_t *n_top, const float *score,
                       const struct sequence_span *span, const struct router_shape *shape)
{
    const int E = shape->E, threads = block_threads(s, 4 * shape->N * E);
    const int64_t N = shape->N, n_stats = span->B * E;
    float *inverse = cpu_scratch(s, 0);
    CHECK(E <= MAX_EXPERTS, "router of %d experts: at most %d", E, MAX_EXPERTS);
    CHECK(N <= (int64_t)(CPU_SCRATCH_BYTES / sizeof *inverse), "%ld tokens at once", (long)N);
    memset(p_sum, 0, (size_t)n_stats * sizeof *p_sum);
    memset(n_top, 0, (size_t)n_stats * sizeof *n_top);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < N; n++) {
        inverse[n] = 1.0f / (row_sum(score + n * E, E) + ROUTER_SUM_EPS);
        count_top(n_top + (span->first + n) / span->T * E, score + n * E, shape);
    }
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int e = 0; e < E; e += COLUMNS) {
        const int size = E - e < COLUMNS ? E - e : COLUMNS;
        for (int64_t n = 0; n < N; n++) {
            float *sum = p_sum + (span->first + n) / span->T * E + e;
            const float *row = score + n * E + e;
#pragma omp simd
            for (int i = 0; i < size; i++) sum[i] += row[i] * inverse[n];
        }
    }
}

void cpu_balance_loss(struct stream *s, double *loss, float *coef, const float *p_sum,
                      const int32_t *n_top, int64_t B, int T, int E, int K, float weight)
{
    const double per_top = (double)E / ((double)K * T);
    double sum = 0;
    (void)s;
    for (int64_t i = 0; i < B * E; i++) {
        const double f = per_top * n_top[i];
        coef[i] = (float)((double)weight * f / T);
        sum += f * ((double)p_sum[i] / T);
    }
    *loss += (double)weight * sum;
}

/* The sign of mean - count without the division: of total - E * count. */
static int bias_step(const int64_t *count, int64_t total, int E, int e)
{
    const int64_t lack = total - E * count[e];
    return (lack > 0) - (lack < 0);
}

void cpu_bias_update(struct stream *s, float *bias, const int64_t *count, int E, float speed,
                     bool centred)
{
    int64_t total = 0, steps = 0;
    (void)s;
    for (int e = 0; e < E; e++) total += count[e];
    for (int e = 0; e < E; e++) steps += bias_step(count, total, E, e);
    const float mean = centred && E > 0 ? speed * (float)steps / (float)E : 0.0f;
    for (int e = 0; e < E; e++) bias[e] += speed * (float)bias_step(count, total, E, e) - mean;
}

void cpu_count_add(struct stream *s, int64_t *total, const int64_t *count, int E)
{
    (void)s;
    for (int e = 0; e < E; e++) total[e] += count[e];
}
