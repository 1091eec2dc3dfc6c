/*
 * swiglu.c - y = silu(gate) * up with silu(g) = g / (1 + exp(-g)), and its backward.
 *
 * Contract: kernels/backend.h. F32 inside, one rounding: silu is not rounded on its own.
 */
#include "kernels/cpu/block.h"
#include "kernels/cpu/vexp.h"

static inline float sigmoid(float x)
{
    return 1.0f / (1.0f + vexp(-x));
}

void cpu_swiglu_fwd(struct stream *s, void *y, const void *gate, const void *up, enum dtype dt,
                    int64_t n)
{
    const int threads = block_threads(s, 8 * n); /* an exponential costs as much as 8 sums */

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i += BLOCK) {
        float gate_buf[BLOCK], up_buf[BLOCK], y_buf[BLOCK];
        const int size = block_size(i, n);
        const float *g = cpu_row(gate_buf, gate, dt, i, size);
        const float *u = cpu_row(up_buf, up, dt, i, size);
        float *out = cpu_row_begin(y_buf, y, dt, i);
#pragma omp simd
        for (int j = 0; j < size; j++) out[j] = g[j] * sigmoid(g[j]) * u[j];
        cpu_row_end(y, dt, i, out, size);
    }
}

void cpu_swiglu_bwd(struct stream *s, void *dgate, void *dup, void *y, const void *dy,
                    const void *gate, const void *up, enum dtype dt, int64_t n)
{
    const int threads = block_threads(s, 8 * n);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i += BLOCK) {
        float gate_buf[BLOCK], up_buf[BLOCK], dy_buf[BLOCK];
        float dgate_buf[BLOCK], dup_buf[BLOCK], y_buf[BLOCK];
        const int size = block_size(i, n);
        const float *g = cpu_row(gate_buf, gate, dt, i, size);
        const float *u = cpu_row(up_buf, up, dt, i, size);
        const float *d = cpu_row(dy_buf, dy, dt, i, size);
        float *dg = cpu_row_begin(dgate_buf, dgate, dt, i);
        float *du = cpu_row_begin(dup_buf, dup, dt, i);
        float *out = y ? cpu_row_begin(y_buf, y, dt, i) : y_buf;
#pragma omp simd
        for (int j = 0; j < size; j++) {
            const float u_j = u[j], d_j = d[j], rise = sigmoid(g[j]), silu = g[j] * rise;
            dg[j] = d_j * u_j * (rise + silu * (1.0f - rise));
            du[j] = d_j * silu;
            out[j] = silu * u_j;
        }
        cpu_row_end(dgate, dt, i, dg, size);
        cpu_row_end(dup, dt, i, du, size);
        if (y) cpu_row_end(y, dt, i, out, size);
    }
}
