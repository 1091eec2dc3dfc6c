/*
 * attention_cached.c - attention of new tokens over cached latents (DeepSeek-V2 report 2.1.2: the
 * up-projections of keys and values are absorbed into the query and the output). A head's query
 * becomes one over the latent, q_nope^T W_k; what it mixes are latents, and one product by W_v
 * makes its output of them. A step of generation reads the latents once a head, and unpacks
 * nothing.
 *
 * Contract: kernels/backend.h. One token's head at a time, with an online softmax.
 */
#include "base/err.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vexp.h"

#include <omp.h>

enum { LANES = 16 };

/* In a fixed order: LANES partial sums, then those. */
static float dot(const float *restrict a, const float *restrict b, int n)
{
    float part[LANES] = {0}, sum = 0.0f;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) part[k] += a[i + k] * b[i + k];
    for (; i < n; i++) part[i % LANES] += a[i] * b[i];
    for (int k = 0; k < LANES; k++) sum += part[k];
    return sum;
}

/* y += a x */
static void axpy(float *restrict y, float a, const float *restrict x, int n)
{
    for (int i = 0; i < n; i++) y[i] += a * x[i];
}

/* A thread's buffers, in its scratch. */
struct buffers {
    float *query; /* [r_kv + d_rope] by latent */
    float *mixed; /* [r_kv] */
    float *q;     /* [d_nope + d_rope] as it came */
    float *out;   /* [d_v] */
    float *row;   /* [r_kv + d_rope] */
};

static struct buffers buffers_of(const struct stream *s, int thread, const struct cached_shape *a)
{
    struct buffers b = {.query = cpu_scratch(s, thread)};
    b.row = b.query + a->r_kv + a->d_rope;
    b.mixed = b.row + a->r_kv + a->d_rope;
    b.q = b.mixed + a->r_kv;
    b.out = b.q + a->d_nope + a->d_rope;
    return b;
}

/* query = [q_nope^T W_k | q_pe] * scale */
static void absorb(const struct buffers *b, const void *q, const void *kv_b, enum dtype dt,
                   const struct cached_shape *a, int64_t item)
{
    const int d_qk = a->d_nope + a->d_rope;
    const int64_t w = item % a->H * (a->d_nope + a->d_v) * a->r_kv;
    cpu_load(b->q, q, dt, item * d_qk, d_qk);
    memset(b->query, 0, (size_t)a->r_kv * sizeof *b->query);
    for (int d = 0; d < a->d_nope; d++)
        axpy(b->query, b->q[d] * a->scale,
             cpu_row(b->row, kv_b, dt, w + (int64_t)d * a->r_kv, a->r_kv), a->r_kv);
    for (int d = 0; d < a->d_rope; d++) b->query[a->r_kv + d] = b->q[a->d_nope + d] * a->scale;
}

/* mixed = the latents of rows 0 .. n - 1 by their probabilities */
static void mix(const struct buffers *b, const void *latent, enum dtype dt,
                const struct cached_shape *a, int64_t n)
{
    const int width = a->r_kv + a->d_rope;
    float max = -INFINITY, sum = 0.0f;
    memset(b->mixed, 0, (size_t)a->r_kv * sizeof *b->mixed);
    for (int64_t t = 0; t < n; t++) {
        const float *row = cpu_row(b->row, latent, dt, t * width, width);
        const float score = dot(b->query, row, width);
        if (score > max) {
            const float shrink = vexp(max - score);
            for (int r = 0; r < a->r_kv; r++) b->mixed[r] *= shrink;
            sum *= shrink;
            max = score;
        }
        const float p = vexp(score - max);
        sum += p;
        axpy(b->mixed, p, row, a->r_kv);
    }
    for (int r = 0; r < a->r_kv; r++) b->mixed[r] /= sum;
}

void cpu_attention_cached(struct stream *s, void *out, const void *q, const void *latent,
                          const void *kv_b, enum dtype dt, const struct cached_shape *a)
{
    const int64_t width = a->r_kv + a->d_rope;
    CHECK((3 * width + a->d_nope + a->d_rope + a->d_v) * (int64_t)sizeof(float) <=
              (int64_t)CPU_SCRATCH_BYTES,
          "latents of %d + %d are too wide", a->r_kv, a->d_rope);
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (int64_t item = 0; item < a->n * a->H; item++) {
        const struct buffers b = buffers_of(s, omp_get_thread_num(), a);
        const int64_t h = item % a->H, w = (h * (a->d_nope + a->d_v) + a->d_nope) * a->r_kv;
        absorb(&b, q, kv_b, dt, a, item);
        mix(&b, latent, dt, a, a->past + item / a->H + 1);
        for (int v = 0; v < a->d_v; v++)
            b.out[v] =
                dot(b.mixed, cpu_row(b.row, kv_b, dt, w + (int64_t)v * a->r_kv, a->r_kv), a->r_kv);
        cpu_store(out, dt, item * a->d_v, b.out, a->d_v);
    }
}
