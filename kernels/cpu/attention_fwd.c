/*
 * attention_fwd.c - causal attention of the CPU backend, tile by tile with an online softmax: the
 * running maximum and sum of every query are corrected when a new tile of keys raises the maximum
 * (Milakov and Gimelshein 2018; FlashAttention, Dao et al. 2022).
 *
 * Contract: kernels/backend.h. Backward: attention_bwd.c. Timing: kernels/bench/attention.c.
 * A head of a sequence is one unit of work for a thread; tile products are library calls.
 */
#include "base/err.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/vexp.h"

#include <math.h>
#include <omp.h>

/* Buffers of one thread, in its scratch. */
struct tiles {
    float *q, *k, *v; /* [QUERIES, d_qk], [KEYS, d_qk], [KEYS, d_v] */
    float *score;     /* [QUERIES, KEYS] */
    float *sum;       /* [QUERIES, d_v] */
    float max[QUERIES], total[QUERIES];
};

static size_t place_tiles(struct tiles *t, float *scratch, int d_qk, int d_v)
{
    float *p = scratch;
    t->q = p, p += QUERIES * (size_t)d_qk;
    t->k = p, p += KEYS * (size_t)d_qk;
    t->v = p, p += KEYS * (size_t)d_v;
    t->score = p, p += QUERIES * KEYS;
    t->sum = p, p += QUERIES * (size_t)d_v;
    return (size_t)(p - scratch) * sizeof *p;
}

/* Turn one row of scores into exp(score - max), with zeros where the mask is, and correct the row's
 * total and its partial output for the new maximum. */
static void softmax_row(float *restrict score, float *restrict sum, float *max, float *total,
                        struct seen seen, int n, int d_v)
{
    if (seen.end <= seen.begin) {
        memset(score, 0, (size_t)n * sizeof *score);
        return;
    }
    float m = *max;
#pragma omp simd reduction(max : m)
    for (int j = seen.begin; j < seen.end; j++) m = score[j] > m ? score[j] : m;
    float row_total = 0.0f;
#pragma omp simd reduction(+ : row_total)
    for (int j = seen.begin; j < seen.end; j++) {
        score[j] = vexp(score[j] - m);
        row_total += score[j];
    }
    for (int j = 0; j < seen.begin; j++) score[j] = 0.0f;
    for (int j = seen.end; j < n; j++) score[j] = 0.0f;
    if (m > *max) {
        const float keep = vexp(*max - m); /* 0 on the first tile: *max is -Inf */
        *total *= keep;
        for (int d = 0; d < d_v; d++) sum[d] *= keep;
    }
    *total += row_total;
    *max = m;
}

/* The n_q queries from query0 against the n_k keys from key0. */
static void fwd_tile(struct tiles *t, const struct head *hd, const void *kv, const void *k_pe,
                     int query0, int n_q, int key0, int n_k)
{
    const int d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v;
    load_keys(t->k, hd, kv, k_pe, key0, n_k);
    load_rows(t->v, kv, hd->dt, hd->kv + key0 * hd->kv_stride + hd->d_nope, hd->kv_stride, n_k,
              d_v);
    product_sgemm(false, true, n_q, n_k, d_qk, hd->scale, t->q, d_qk, t->k, d_qk, 0.0f, t->score,
                  KEYS);
    for (int i = 0; i < n_q; i++)
        softmax_row(t->score + i * KEYS, t->sum + (int64_t)i * d_v, &t->max[i], &t->total[i],
                    keys_seen(hd, query0 + i, key0, n_k), n_k, d_v);
    product_sgemm(false, false, n_q, d_v, n_k, 1.0f, t->score, KEYS, t->v, d_v, 1.0f, t->sum, d_v);
}

static void fwd_head(struct tiles *t, const struct head *hd, void *out, float *lse, const void *q,
                     const void *kv, const void *k_pe)
{
    const int d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v;
    for (int query0 = 0; query0 < hd->T; query0 += QUERIES) {
        const int n_q = hd->T - query0 < QUERIES ? hd->T - query0 : QUERIES;
        load_rows(t->q, q, hd->dt, hd->q + query0 * hd->q_stride, hd->q_stride, n_q, d_qk);
        memset(t->sum, 0, (size_t)n_q * (size_t)d_v * sizeof *t->sum);
        for (int i = 0; i < n_q; i++) t->max[i] = -INFINITY, t->total[i] = 0.0f;

        const int begin = first_key(hd, query0) / KEYS * KEYS, end = query0 + n_q;
        for (int key0 = begin; key0 < end; key0 += KEYS)
            fwd_tile(t, hd, kv, k_pe, query0, n_q, key0, end - key0 < KEYS ? end - key0 : KEYS);

        for (int i = 0; i < n_q; i++) {
            const int64_t row = query0 + i;
            float *const sum = t->sum + (int64_t)i * d_v;
            const float share = 1.0f / t->total[i]; /* at least 1 key: every query sees itself */
            for (int d = 0; d < d_v; d++) sum[d] *= share;
            cpu_store(out, hd->dt, hd->out + row * hd->out_stride, sum, d_v);
            lse[hd->lse + row * hd->lse_stride] = t->max[i] + logf(t->total[i]);
        }
    }
}

void cpu_attention_fwd(struct stream *s, void *out, float *lse, const void *q, const void *kv,
                       const void *k_pe, const int32_t *doc_start, enum dtype dt,
                       const struct attention_shape *shape)
{
    const int d_qk = shape->d_nope + shape->d_rope;
    const int64_t n_items = shape->T > 0 ? shape->B * shape->H : 0;
    struct tiles t0;
    const size_t used = place_tiles(&t0, cpu_scratch(s, 0), d_qk, shape->d_v);
    CHECK(used <= CPU_SCRATCH_BYTES, "head sizes %d and %d are too large", d_qk, shape->d_v);
#pragma omp parallel num_threads(s->threads)
    {
        product_one_thread();
        struct tiles t;
        place_tiles(&t, cpu_scratch(s, omp_get_thread_num()), d_qk, shape->d_v);
#pragma omp for schedule(dynamic)
        for (int64_t item = 0; item < n_items; item++) {
            const struct head hd = head_of(shape, dt, doc_start, item);
            fwd_head(&t, &hd, out, lse, q, kv, k_pe);
        }
    }
}
