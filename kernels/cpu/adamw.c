/*
 * adamw.c - one AdamW step over a flat array of parameters.
 *
 * Contract: kernels/backend.h. Memory bound: 28 bytes an element with F32 moments, 20 with BF16.
 * The step uses the new moments before they are rounded.
 */
#include "kernels/cpu/block.h"

#include <math.h>

/* m, v to m_out, v_out, which may be the same. Whether a result is beyond ADAMW_LIMIT or NaN. */
static int step(float *p, float *m_out, float *v_out, const float *m, const float *v,
                const float *g, int n, const struct adamw_args *args)
{
    const float beta1 = (float)args->beta1, rest1 = (float)(1.0 - args->beta1);
    const float beta2 = (float)args->beta2, rest2 = (float)(1.0 - args->beta2);
    const float eps = (float)args->eps, grad_scale = (float)args->grad_scale;
    const float decay = (float)(1.0 - args->lr * args->weight_decay);
    const float rate = (float)(args->lr / args->correction1);
    const float root = (float)(1.0 / sqrt(args->correction2));
    int good = 1;

#pragma omp simd reduction(& : good)
    for (int i = 0; i < n; i++) {
        const float gi = g[i] * grad_scale;
        const float mi = beta1 * m[i] + rest1 * gi;
        const float vi = beta2 * v[i] + rest2 * (gi * gi);
        m_out[i] = mi;
        v_out[i] = vi;
        p[i] = p[i] * decay - rate * mi / (sqrtf(vi) * root + eps);
        good &= (fabsf(p[i]) < ADAMW_LIMIT) & (fabsf(mi) < ADAMW_LIMIT) & (vi < ADAMW_LIMIT);
    }
    return !good;
}

void cpu_adamw(struct stream *s, float *p, void *m, void *v, enum dtype m_dt, const float *g,
               int64_t n, const struct adamw_args *args, int32_t *bad)
{
    const int threads = block_threads(s, n);
    int any = 0;

#pragma omp parallel for num_threads(threads) reduction(| : any) if (threads > 1)
    for (int64_t i = 0; i < n; i += BLOCK) {
        float m_buf[BLOCK], v_buf[BLOCK];
        const int size = block_size(i, n);
        const float *m_i = cpu_row(m_buf, m, m_dt, i, size);
        const float *v_i = cpu_row(v_buf, v, m_dt, i, size);
        float *m_out = cpu_row_begin(m_buf, m, m_dt, i);
        float *v_out = cpu_row_begin(v_buf, v, m_dt, i);
        any |= step(p + i, m_out, v_out, m_i, v_i, g + i, size, args);
        cpu_row_end(m, m_dt, i, m_out, size);
        cpu_row_end(v, m_dt, i, v_out, size);
    }
    if (any) *bad = 1;
}
