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

/* Element i; dt is a constant wherever these are inlined, so that loops vectorise. */
static inline float get(const void *x, enum dtype dt, int64_t i)
{
    return dt == DTYPE_F32 ? ((const float *)x)[i] : bf16_to_f32(((const bf16 *)x)[i]);
}
static inline void put(void *y, enum dtype dt, int64_t i, float value)
{
    if (dt == DTYPE_F32)
        ((float *)y)[i] = value;
    else
        ((bf16 *)y)[i] = f32_to_bf16(value);
}

static inline __attribute__((always_inline)) void
fwd(void *y, const void *gate, const void *up, const enum dtype dt, int64_t begin, int64_t end)
{
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        const float g = get(gate, dt, i);
        put(y, dt, i, g * sigmoid(g) * get(up, dt, i));
    }
}

void cpu_swiglu_fwd(struct stream *s, void *y, const void *gate, const void *up, enum dtype dt,
                    int64_t n)
{
    const int threads = block_threads(s, 8 * n); /* an exponential costs as much as 8 sums */

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i += BLOCK) {
        if (dt == DTYPE_F32)
            fwd(y, gate, up, DTYPE_F32, i, i + block_size(i, n));
        else
            fwd(y, gate, up, DTYPE_BF16, i, i + block_size(i, n));
    }
}

struct bwd_args {
    void *dgate, *dup, *y;
    const void *dy, *gate, *up;
};

static inline __attribute__((always_inline)) void bwd(const struct bwd_args *a, const enum dtype dt,
                                                      const bool keep, int64_t begin, int64_t end)
{
    void *const dgate = a->dgate, *const dup = a->dup, *const y = a->y;
    const void *const dy = a->dy, *const gate = a->gate, *const up = a->up;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        const float g = get(gate, dt, i), u = get(up, dt, i), d = get(dy, dt, i);
        const float rise = sigmoid(g), silu = g * rise;
        put(dgate, dt, i, d * u * (rise + silu * (1.0f - rise)));
        put(dup, dt, i, d * silu);
        if (keep) put(y, dt, i, silu * u);
    }
}

static inline __attribute__((always_inline)) void
bwd_of(const struct bwd_args *a, const enum dtype dt, int64_t begin, int64_t end)
{
    if (a->y)
        bwd(a, dt, true, begin, end);
    else
        bwd(a, dt, false, begin, end);
}

void cpu_swiglu_bwd(struct stream *s, void *dgate, void *dup, void *y, const void *dy,
                    const void *gate, const void *up, enum dtype dt, int64_t n)
{
    const int threads = block_threads(s, 8 * n);
    const struct bwd_args a = {dgate, dup, y, dy, gate, up};

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i += BLOCK) {
        if (dt == DTYPE_F32)
            bwd_of(&a, DTYPE_F32, i, i + block_size(i, n));
        else
            bwd_of(&a, DTYPE_BF16, i, i + block_size(i, n));
    }
}
