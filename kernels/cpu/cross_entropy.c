/*
 * cross_entropy.c - the three steps of the loss over a vocabulary split over ranks.
 *
 * Contract: kernels/backend.h. The exponentials are computed twice, in steps 2 and 3, rather than
 * kept: the logits are only read, and reading them back would cost as much.
 */
#include "kernels/cpu/block.h"
#include "kernels/cpu/vexp.h"

#include <math.h>

enum { EXP_COST = 8 }; /* in sums, for the choice of the number of threads */

void cpu_cross_entropy_max(struct stream *s, float *max, const float *logits, int64_t n, int V)
{
    const int threads = block_threads(s, n * V);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * V;
        float most = -INFINITY;
#pragma omp simd reduction(max : most)
        for (int v = 0; v < V; v++) most = row[v] > most ? row[v] : most;
        max[i] = most;
    }
}

/* F32 within a piece of BLOCK terms, F64 over the pieces: V reaches 163,840. */
static float exp_sum(const float *row, float max, int V)
{
    double sum = 0;
    for (int v = 0; v < V; v += BLOCK) {
        const int size = block_size(v, V);
        float part = 0;
#pragma omp simd reduction(+ : part)
        for (int j = 0; j < size; j++) part += vexp_low(row[v + j] - max);
        sum += (double)part;
    }
    return (float)sum;
}

/* The column of this label here, or -1. */
static int local_column(int32_t label, int col0, int V)
{
    return label >= col0 && label - col0 < V ? label - col0 : -1;
}

void cpu_cross_entropy_sum(struct stream *s, float *sum, float *target, const float *logits,
                           const float *max, const int32_t *label, int64_t n, int V, int col0)
{
    const int threads = block_threads(s, EXP_COST * n * V);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i++) {
        const int column = local_column(label[i], col0, V);
        sum[i] = exp_sum(logits + i * V, max[i], V);
        target[i] = column >= 0 ? logits[i * V + column] - max[i] : 0.0f;
    }
}

/* One row of dlogits: scale * exp(l - max) / sum, less scale at the label's column (-1: not here),
 * before the rounding. */
static void row_bwd(void *dlogits, enum dtype dt, int64_t first, const float *row, float max,
                    float factor, int column, float scale, int V)
{
    for (int v = 0; v < V; v += BLOCK) {
        float buf[BLOCK];
        const int size = block_size(v, V);
        float *out = cpu_row_begin(buf, dlogits, dt, first + v);
#pragma omp simd
        for (int j = 0; j < size; j++) out[j] = vexp_low(row[v + j] - max) * factor;
        if (column >= v && column < v + size) out[column - v] -= scale;
        cpu_row_end(dlogits, dt, first + v, out, size);
    }
}

void cpu_cross_entropy_loss(struct stream *s, float *loss, void *dlogits, enum dtype dt,
                            const float *logits, const float *max, const float *sum,
                            const float *target, const int32_t *label, float scale, int64_t n,
                            int V, int col0)
{
    const int threads = block_threads(s, EXP_COST * n * V);
    const size_t row_bytes = (size_t)V * dtype_bytes(dt);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i++) {
        const bool counts = label[i] >= 0;
        loss[i] = counts ? (float)(log((double)sum[i]) - (double)target[i]) : 0.0f;
        if (!dlogits) continue;
        if (counts)
            row_bwd(dlogits, dt, i * V, logits + i * V, max[i], scale / sum[i],
                    local_column(label[i], col0, V), scale, V);
        else /* also when its logits are not finite: nothing may come from an ignored token */
            memset(elem(dlogits, dt, i * V), 0, row_bytes);
    }
}
