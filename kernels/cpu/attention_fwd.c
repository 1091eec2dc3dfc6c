/*
 * attention_fwd.c - causal attention of the CPU backend, tile by tile with an online softmax: the
 * running maximum and sum of every query are corrected when a new tile of keys raises the maximum
 * (Milakov and Gimelshein 2018; FlashAttention, Dao et al. 2022).
 *
 * Contract: kernels/backend.h. Backward: attention_bwd.c. Timing: kernels/bench/attention.c.
 * A head of a sequence is one unit of work for a thread. Its keys and values are packed for the
 * products once; then every block of queries goes over the blocks of keys that it sees, a panel of
 * queries at a time. Scores are computed turned, a row for each key, so that a vector holds
 * different queries and the softmax needs no sum within one:
 *     score [keys, panel] = k q^T     sum [d_v, panel] += v^T exp(score)
 */
#include "kernels/cpu/attention.h"
#include "kernels/cpu/vexp.h"

#include <math.h>
#include <omp.h>

/* Buffers of one thread, in its scratch. */
struct tiles {
    float *k;     /* tiles of the head's keys, d_qk deep */
    float *v;     /* of each block of keys: tiles of d_v, KEYS deep */
    float *q;     /* panels of a block of queries, d_qk deep */
    float *score; /* [KEYS, TILE_COLS] */
    float *sum;   /* of each panel of the queries: [whole tiles of d_v, TILE_COLS] */
    float *rows;  /* [QUERIES or KEYS, d_qk or d_v] */
    float max[QUERIES], total[QUERIES];
};

/* Elements of v for a block of keys, of sum for a panel of queries. */
static int64_t v_block(int64_t d_v)
{
    return tile_count(d_v) * tile_step(KEYS);
}
static int64_t sum_panel(int64_t d_v)
{
    return tile_count(d_v) * TILE_ROWS * TILE_COLS;
}

static size_t place_tiles(struct tiles *t, float *scratch, const struct attention_shape *shape)
{
    const int64_t d_qk = shape->d_nope + shape->d_rope, d_v = shape->d_v, T = shape->T;
    float *p = scratch;
    t->k = p, p += tile_count(T) * tile_step(d_qk);
    t->v = p, p += (T / KEYS + 1) * v_block(d_v);
    t->q = p, p += QUERIES / TILE_COLS * panel_step(d_qk);
    t->score = p, p += KEYS * TILE_COLS;
    t->sum = p, p += QUERIES / TILE_COLS * sum_panel(d_v);
    t->rows = p, p += QUERIES * (d_qk > d_v ? d_qk : d_v);
    return (size_t)(p - scratch) * sizeof *p;
}

static void load_head(struct tiles *t, const struct head *hd, const void *kv, const void *k_pe)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope;
    for (int64_t key0 = 0; key0 < hd->T; key0 += KEYS) {
        const int64_t n = tile_min(KEYS, hd->T - key0);
        load_keys(t->rows, hd, kv, k_pe, key0, n);
        pack_tiles(t->k + key0 / TILE_ROWS * tile_step(d_qk), t->rows, n, d_qk);
        load_values(t->rows, hd, kv, key0, n);
        pack_turned_tiles(t->v + key0 / KEYS * v_block(hd->d_v), tile_step(KEYS), t->rows, n,
                          hd->d_v);
    }
}

static void load_queries(struct tiles *t, const struct head *hd, const void *q, int64_t query0,
                         int64_t n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope, n_panels = panel_count(n);
    load_rows(t->rows, d_qk, q, hd->dt, hd->q + query0 * hd->q_stride, hd->q_stride, n, d_qk);
    for (int64_t i = 0; i < n * d_qk; i++) t->rows[i] *= hd->scale;
    pack_turned_panels(t->q, t->rows, n, d_qk);
    memset(t->sum, 0, (size_t)(n_panels * sum_panel(hd->d_v)) * sizeof *t->sum);
    for (int64_t i = 0; i < QUERIES; i++) t->max[i] = -INFINITY, t->total[i] = 0.0f;
}

/* Scores that the mask hides become -Inf: those of keys behind the query, and of documents before
 * the query's. */
static void hide_scores(float *score, const struct head *hd, int64_t query, int64_t key0, int64_t n)
{
    for (int64_t j = query + 1 > key0 ? query + 1 - key0 : 0; j < n; j++)
        for (int64_t i = 0; i < TILE_COLS && query + i < key0 + j; i++)
            score[j * TILE_COLS + i] = -INFINITY;
    if (!hd->doc_start) return;
    for (int64_t i = 0; i < TILE_COLS; i++)
        for (int64_t j = 0; j < n && key0 + j < first_key(hd, query + i); j++)
            score[j * TILE_COLS + i] = -INFINITY;
}

/* score becomes exp(score - max) for the new maximum of every query; its total and its partial
 * output are corrected for it. */
static void softmax(float *restrict score, int64_t n, float *restrict sum, int64_t d, float *max,
                    float *total)
{
    float top[TILE_COLS], keep[TILE_COLS], row_total[TILE_COLS] = {0.0f};
    memcpy(top, max, sizeof top);
    for (int64_t j = 0; j < n; j++)
#pragma omp simd
        for (int i = 0; i < TILE_COLS; i++)
            top[i] = score[j * TILE_COLS + i] > top[i] ? score[j * TILE_COLS + i] : top[i];
    bool raised = false;
    for (int i = 0; i < TILE_COLS; i++) {
        raised = raised || top[i] > max[i];
        const float old = max[i];
        max[i] = top[i];
        if (top[i] == -INFINITY) top[i] = 0.0f; /* no key seen yet, all are exp(-Inf) */
        keep[i] = vexp_low(old - top[i]);
    }
    for (int64_t j = 0; j < n; j++)
#pragma omp simd
        for (int i = 0; i < TILE_COLS; i++) {
            const float p = vexp_low(score[j * TILE_COLS + i] - top[i]);
            score[j * TILE_COLS + i] = p;
            row_total[i] += p;
        }
    for (int i = 0; i < TILE_COLS; i++) total[i] = total[i] * keep[i] + row_total[i];
    if (!raised) return;
    for (int64_t j = 0; j < d; j++)
#pragma omp simd
        for (int i = 0; i < TILE_COLS; i++) sum[j * TILE_COLS + i] *= keep[i];
}

/* A panel of queries, the first of them query, number p of its block, against the block of keys
 * from key0. */
static void fwd_panel(struct tiles *t, const struct head *hd, int64_t query, int64_t p,
                      int64_t key0)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope;
    const int64_t n = tile_min(tile_min(KEYS, hd->T - key0), query + TILE_COLS - key0);
    if (n <= 0) return;
    float *const sum = t->sum + p * sum_panel(hd->d_v);
    tile_product(tile_count(n), d_qk, t->k + key0 / TILE_ROWS * tile_step(d_qk), tile_step(d_qk),
                 t->q + p * panel_step(d_qk), t->score, TILE_COLS, false, NULL);
    hide_scores(t->score, hd, query, key0, n);
    softmax(t->score, n, sum, hd->d_v, t->max + p * TILE_COLS, t->total + p * TILE_COLS);
    tile_product(tile_count(hd->d_v), n, t->v + key0 / KEYS * v_block(hd->d_v), tile_step(KEYS),
                 t->score, sum, TILE_COLS, true, NULL);
}

/* sum / total of n queries from query0 to out, and their log-sum-exp. */
static void store_queries(struct tiles *t, const struct head *hd, void *out, float *lse,
                          int64_t query0, int64_t n)
{
    for (int64_t p = 0; p < panel_count(n); p++)
        pack_transpose(t->rows + p * TILE_COLS * hd->d_v, hd->d_v, t->sum + p * sum_panel(hd->d_v),
                       TILE_COLS, hd->d_v, TILE_COLS);
    for (int64_t i = 0; i < n; i++) {
        float *const row = t->rows + i * hd->d_v;
        const float share = 1.0f / t->total[i]; /* at least 1 key: every query sees itself */
        for (int d = 0; d < hd->d_v; d++) row[d] *= share;
        lse[hd->lse + (query0 + i) * hd->lse_stride] = t->max[i] + logf(t->total[i]);
    }
    store_rows(out, hd->dt, hd->out + query0 * hd->out_stride, hd->out_stride, t->rows, hd->d_v, n,
               hd->d_v);
}

static void fwd_head(struct tiles *t, const struct head *hd, void *out, float *lse, const void *q)
{
    for (int64_t query0 = 0; query0 < hd->T; query0 += QUERIES) {
        const int64_t n = tile_min(QUERIES, hd->T - query0);
        load_queries(t, hd, q, query0, n);
        for (int64_t key0 = first_key(hd, query0) / KEYS * KEYS; key0 < query0 + n; key0 += KEYS)
            for (int64_t p = 0; p < panel_count(n); p++)
                fwd_panel(t, hd, query0 + p * TILE_COLS, p, key0);
        store_queries(t, hd, out, lse, query0, n);
    }
}

void cpu_attention_fwd(struct stream *s, void *out, float *lse, const void *q, const void *kv,
                       const void *k_pe, const int32_t *doc_start, enum dtype dt,
                       const struct attention_shape *shape)
{
    const int64_t n_items = shape->T > 0 ? shape->B * shape->H : 0;
    struct tiles t0;
    check_tiles(place_tiles(&t0, cpu_scratch(s, 0), shape), shape);
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
