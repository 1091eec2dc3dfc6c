/*
 * attention_fwd.c - causal attention of the CPU backend, tile by tile with an online softmax: the
 * running maximum and sum of every query are corrected when a new tile of keys raises the maximum
 * (Milakov and Gimelshein 2018; FlashAttention, Dao et al. 2022).
 *
 * Contract: kernels/backend.h. Backward: attention_bwd.c. Timing: kernels/bench/attention.c.
 * A head of a sequence is one unit of work for a thread. Its keys and values are laid out for the
 * products once; then every block of queries goes over those it sees.
 */
#include "base/err.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/vexp.h"

#include <math.h>
#include <omp.h>

/* Buffers of one thread, in its scratch. Rows lie row_step apart. */
struct tiles {
    float *k_columns; /* [blocks of keys, d_qk, KEYS] of the whole head */
    float *v;         /* [T, d_v] of the whole head */
    float *q, *k;     /* [QUERIES, d_qk], [KEYS, d_qk] */
    float *score;     /* [QUERIES, KEYS] */
    float *sum;       /* [QUERIES, d_v] */
    float max[QUERIES], total[QUERIES];
};

static size_t place_tiles(struct tiles *t, float *scratch, const struct attention_shape *shape)
{
    const int64_t d_qk = shape->d_nope + shape->d_rope, step_v = row_step(shape->d_v);
    float *p = scratch;
    t->k_columns = p, p += (int64_t)(shape->T + KEYS) * d_qk;
    t->v = p, p += shape->T * step_v;
    t->q = p, p += QUERIES * row_step(d_qk);
    t->k = p, p += KEYS * row_step(d_qk);
    t->score = p, p += QUERIES * KEYS;
    t->sum = p, p += QUERIES * step_v;
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

static void load_head(struct tiles *t, const struct head *hd, const void *kv, const void *k_pe)
{
    const int d_qk = hd->d_nope + hd->d_rope;
    load_rows(t->v, kv, hd->dt, hd->kv + hd->d_nope, hd->kv_stride, hd->T, hd->d_v);
    for (int key0 = 0; key0 < hd->T; key0 += KEYS) {
        const int n = hd->T - key0 < KEYS ? hd->T - key0 : KEYS;
        load_keys(t->k, hd, kv, k_pe, key0, n);
        turn_rows(t->k_columns + (int64_t)key0 * d_qk, t->k, n, d_qk);
    }
}

/* The n_q queries from query0 against the n_k keys from key0. */
static void fwd_block(struct tiles *t, const struct head *hd, int query0, int n_q, int key0,
                      int n_k)
{
    const int d_qk = hd->d_nope + hd->d_rope;
    const int64_t step_v = row_step(hd->d_v);
    multiply_seen(t->score, t->q, t->k_columns + (int64_t)key0 * d_qk, n_q, n_k, d_qk, query0,
                  key0);
    for (int i = 0; i < n_q; i++)
        softmax_row(t->score + i * KEYS, t->sum + i * step_v, &t->max[i], &t->total[i],
                    keys_seen(hd, query0 + i, key0, n_k), n_k, hd->d_v);
    add_over_keys(t->sum, t->score, t->v + key0 * step_v, n_q, n_k, hd->d_v, query0, key0);
}

static void load_queries(struct tiles *t, const struct head *hd, const void *q, int query0, int n_q)
{
    const int d_qk = hd->d_nope + hd->d_rope;
    load_rows(t->q, q, hd->dt, hd->q + query0 * hd->q_stride, hd->q_stride, n_q, d_qk);
    for (int64_t i = 0; i < n_q * row_step(d_qk); i++) t->q[i] *= hd->scale;
    memset(t->sum, 0, (size_t)(n_q * row_step(hd->d_v)) * sizeof *t->sum);
    for (int i = 0; i < n_q; i++) t->max[i] = -INFINITY, t->total[i] = 0.0f;
}

static void fwd_head(struct tiles *t, const struct head *hd, void *out, float *lse, const void *q)
{
    for (int query0 = 0; query0 < hd->T; query0 += QUERIES) {
        const int n_q = hd->T - query0 < QUERIES ? hd->T - query0 : QUERIES;
        load_queries(t, hd, q, query0, n_q);
        const int begin = first_key(hd, query0) / KEYS * KEYS, end = query0 + n_q;
        for (int key0 = begin; key0 < end; key0 += KEYS)
            fwd_block(t, hd, query0, n_q, key0, end - key0 < KEYS ? end - key0 : KEYS);

        for (int i = 0; i < n_q; i++) {
            const int64_t row = query0 + i;
            float *const sum = t->sum + i * row_step(hd->d_v);
            const float share = 1.0f / t->total[i]; /* at least 1 key: every query sees itself */
            for (int d = 0; d < hd->d_v; d++) sum[d] *= share;
            cpu_store(out, hd->dt, hd->out + row * hd->out_stride, sum, hd->d_v);
            lse[hd->lse + row * hd->lse_stride] = t->max[i] + logf(t->total[i]);
        }
    }
}

void cpu_attention_fwd(struct stream *s, void *out, float *lse, const void *q, const void *kv,
                       const void *k_pe, const int32_t *doc_start, enum dtype dt,
                       const struct attention_shape *shape)
{
    const int64_t n_items = shape->T > 0 ? shape->B * shape->H : 0;
    struct tiles t0;
    const size_t used = place_tiles(&t0, cpu_scratch(s, 0), shape);
    CHECK(used <= CPU_SCRATCH_BYTES, "T %d with head sizes %d + %d and %d is too large", shape->T,
          shape->d_nope, shape->d_rope, shape->d_v);
#pragma omp parallel num_threads(s->threads)
    {
        struct tiles t;
        place_tiles(&t, cpu_scratch(s, omp_get_thread_num()), shape);
#pragma omp for schedule(dynamic)
        for (int64_t item = 0; item < n_items; item++) {
            const struct head hd = head_of(shape, dt, doc_start, item);
            load_head(&t, &hd, kv, k_pe);
            fwd_head(&t, &hd, out, lse, q);
        }
    }
}
