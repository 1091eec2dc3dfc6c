/*
 * attention_bwd.c - the backward of causal attention on the CPU. Probabilities are made again, tile
 * by tile, from the log-sum-exp that the forward kept. With P = exp(scale q k^T - lse),
 * delta = rowsum(dout * out) and dS = P * (dout v^T - delta) * scale:
 *     dv += P^T dout    dk += dS^T q    dq += dS k
 * (FlashAttention-2, Dao 2023).
 *
 * Contract: kernels/backend.h. Forward: attention_fwd.c. Timing: kernels/bench/attention.c.
 * Keys are the outer loop, so dk and dv of a block of keys are finished in cache; dq grows in the
 * thread's scratch. A panel of keys takes part at a time:
 *     score, dprob [queries, panel] = q k^T, dout v^T
 *     dv^T [d_v, panel] += dout^T P      dk^T [d_qk, panel] += q^T dS
 * and dq [queries, d_qk] += dS k when all panels of the block are there. The shared part of k takes
 * part in every head: each head's dk_pe is added to the total in the order of the heads.
 */
#include "kernels/cpu/attention.h"
#include "kernels/cpu/vexp.h"

#include <math.h>
#include <omp.h>

/* The caller's arrays. */
struct bwd {
    void *dq, *dkv, *dk_pe;
    const void *dout, *out, *q, *kv, *k_pe;
    const float *lse;
};

/* Buffers of one thread, in its scratch. Of the whole head: */
struct tiles {
    float *q, *dout;               /* tiles of queries, d_qk and d_v deep; q times scale */
    float *q_turned, *dout_turned; /* tiles of d_qk and d_v, T deep */
    float *dq;                     /* of each panel of d_qk: [queries, TILE_COLS] */
    float *lse, *delta;            /* [queries]; behind the end Inf, which gives P = 0, and 0 */
    float *dpe;                    /* [T, d_rope], this head's */
    float *dpe_sum;                /* [T, d_rope], thread 0's, the sum over heads so far */
    /* Of a block of keys, panels of them: */
    float *k_turned, *v_turned; /* d_qk and d_v deep */
    float *k;                   /* panels of d_qk, KEYS deep */
    float *dk, *dv;             /* of each panel of keys: [whole tiles of d_qk or d_v, TILE_COLS] */
    float *rows, *out;          /* [KEYS or QUERIES, d_qk or d_v] */
    /* Of a block of queries and one of keys: */
    float *prob, *dscore; /* [QUERIES, TILE_COLS], a panel of keys */
    float *dscore_tiles;  /* tiles of QUERIES, KEYS deep */
};

/* Queries in whole tiles. */
static int64_t padded(int64_t n)
{
    return tile_count(n) * TILE_ROWS;
}

static size_t place_tiles(struct tiles *t, float *scratch, const struct attention_shape *shape)
{
    const int64_t d_qk = shape->d_nope + shape->d_rope, d_v = shape->d_v, T = shape->T;
    const int64_t key_panels = KEYS / TILE_COLS;
    float *p = scratch;
    t->q = p, p += tile_count(T) * tile_step(d_qk);
    t->dout = p, p += tile_count(T) * tile_step(d_v);
    t->q_turned = p, p += tile_count(d_qk) * tile_step(T);
    t->dout_turned = p, p += tile_count(d_v) * tile_step(T);
    t->dq = p, p += panel_count(d_qk) * padded(T) * TILE_COLS;
    t->lse = p, p += padded(T);
    t->delta = p, p += padded(T);
    t->dpe = p, p += T * shape->d_rope;
    t->dpe_sum = p, p += T * shape->d_rope;
    t->k_turned = p, p += key_panels * panel_step(d_qk);
    t->v_turned = p, p += key_panels * panel_step(d_v);
    t->k = p, p += panel_count(d_qk) * panel_step(KEYS);
    t->dk = p, p += key_panels * padded(d_qk) * TILE_COLS;
    t->dv = p, p += key_panels * padded(d_v) * TILE_COLS;
    t->rows = p, p += QUERIES * (d_qk > d_v ? d_qk : d_v);
    t->out = p, p += QUERIES * d_v;
    t->prob = p, p += QUERIES * TILE_COLS;
    t->dscore = p, p += QUERIES * TILE_COLS;
    t->dscore_tiles = p, p += QUERIES / TILE_ROWS * tile_step(KEYS);
    return (size_t)(p - scratch) * sizeof *p;
}

static float dot(const float *a, const float *b, int n)
{
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* n queries from query0: q times scale, dout, the log-sum-exp, and delta = dout . out. */
static void load_queries(struct tiles *t, const struct head *hd, const struct bwd *x,
                         int64_t query0, int64_t n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v, tile = query0 / TILE_ROWS;
    load_rows(t->rows, d_qk, x->q, hd->dt, hd->q + query0 * hd->q_stride, hd->q_stride, n, d_qk);
    for (int64_t i = 0; i < n * d_qk; i++) t->rows[i] *= hd->scale;
    pack_tiles(t->q + tile * tile_step(d_qk), t->rows, n, d_qk);
    pack_turned_tiles(t->q_turned + query0 * TILE_ROWS, tile_step(hd->T), t->rows, n, d_qk);

    const int64_t first = hd->out + query0 * hd->out_stride;
    load_rows(t->rows, d_v, x->dout, hd->dt, first, hd->out_stride, n, d_v);
    load_rows(t->out, d_v, x->out, hd->dt, first, hd->out_stride, n, d_v);
    pack_tiles(t->dout + tile * tile_step(d_v), t->rows, n, d_v);
    pack_turned_tiles(t->dout_turned + query0 * TILE_ROWS, tile_step(hd->T), t->rows, n, d_v);
    for (int64_t i = 0; i < padded(n); i++) {
        t->lse[query0 + i] = i < n ? x->lse[hd->lse + (query0 + i) * hd->lse_stride] : INFINITY;
        t->delta[query0 + i] = i < n ? dot(t->rows + i * d_v, t->out + i * d_v, hd->d_v) : 0.0f;
    }
}

static void load_block(struct tiles *t, const struct head *hd, const struct bwd *x, int64_t key0,
                       int64_t n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v, n_panels = panel_count(n);
    load_keys(t->rows, hd, x->kv, x->k_pe, key0, n);
    pack_turned_panels(t->k_turned, t->rows, n, d_qk);
    for (int64_t j = 0; j < n; j++)
        pack_across_panels(t->k + j * TILE_COLS, panel_step(KEYS), t->rows, DTYPE_F32, j * d_qk,
                           d_qk);
    load_values(t->rows, hd, x->kv, key0, n);
    pack_turned_panels(t->v_turned, t->rows, n, d_v);
    memset(t->dk, 0, (size_t)(n_panels * padded(d_qk) * TILE_COLS) * sizeof *t->dk);
    memset(t->dv, 0, (size_t)(n_panels * padded(d_v) * TILE_COLS) * sizeof *t->dv);
}

/* One row: prob holds scores and becomes P, dscore holds dout v^T and becomes dS / scale. */
static inline void score_row(float *restrict prob, float *restrict dscore, float lse, float delta)
{
#pragma omp simd
    for (int j = 0; j < TILE_COLS; j++) {
        prob[j] = vexp_low(prob[j] - lse);
        dscore[j] = prob[j] * (dscore[j] - delta);
    }
}

/* Zeros outside of begin .. end, the keys that a query sees. */
static void hide_rest(float *prob, float *dscore, int64_t begin, int64_t end)
{
    for (int64_t j = 0; j < TILE_COLS; j++)
        if (j < begin || j >= end) prob[j] = dscore[j] = 0.0f;
}

/* The rows of n queries from query0 against the panel of keys from key. */
static void score_rows(struct tiles *t, const struct head *hd, int64_t query0, int64_t n,
                       int64_t key)
{
    for (int64_t i = 0; i < n; i++) {
        float *const prob = t->prob + i * TILE_COLS, *const dscore = t->dscore + i * TILE_COLS;
        const int64_t row = query0 + i, begin = first_key(hd, row) - key, end = row + 1 - key;
        score_row(prob, dscore, t->lse[row], t->delta[row]);
        if (begin > 0 || end < TILE_COLS) hide_rest(prob, dscore, begin, end);
    }
}

/* Panel p of the block of keys from key0 against n queries from query0, without those of them that
 * come before all its keys. */
static void bwd_panel(struct tiles *t, const struct head *hd, int64_t query0, int64_t n,
                      int64_t key0, int64_t p)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v, key = key0 + p * TILE_COLS;
    const int64_t skip = key > query0 ? (key - query0) / TILE_ROWS : 0; /* tiles */
    const int64_t n_tiles = tile_count(n) - skip, tile = query0 / TILE_ROWS + skip;
    if (n_tiles <= 0) return;
    const int64_t first = tile * TILE_ROWS, deep = query0 + n - first;
    tile_product(n_tiles, d_qk, t->q + tile * tile_step(d_qk), tile_step(d_qk),
                 t->k_turned + p * panel_step(d_qk), t->prob, TILE_COLS, false, NULL);
    tile_product(n_tiles, d_v, t->dout + tile * tile_step(d_v), tile_step(d_v),
                 t->v_turned + p * panel_step(d_v), t->dscore, TILE_COLS, false, NULL);
    score_rows(t, hd, first, n_tiles * TILE_ROWS, key);
    tile_product(tile_count(d_v), deep, t->dout_turned + first * TILE_ROWS, tile_step(hd->T),
                 t->prob, t->dv + p * padded(d_v) * TILE_COLS, TILE_COLS, true, NULL);
    tile_product(tile_count(d_qk), deep, t->q_turned + first * TILE_ROWS, tile_step(hd->T),
                 t->dscore, t->dk + p * padded(d_qk) * TILE_COLS, TILE_COLS, true, NULL);
    for (int64_t i = 0; i < n_tiles; i++)
        pack_tile(t->dscore_tiles + (skip + i) * tile_step(KEYS) + p * TILE_COLS * TILE_ROWS,
                  t->dscore, DTYPE_F32, i * TILE_ROWS * TILE_COLS, TILE_COLS, TILE_ROWS, TILE_COLS);
}

/* n queries from query0 against the n_k keys from key0. */
static void bwd_block(struct tiles *t, const struct head *hd, int64_t query0, int64_t n,
                      int64_t key0, int64_t n_k)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope;
    for (int64_t p = 0; p < panel_count(n_k); p++) bwd_panel(t, hd, query0, n, key0, p);
    /* Queries behind the block see all its keys, those in it only the keys before them. */
    const int64_t at_once = query0 >= key0 + n_k ? tile_count(n) : 1;
    for (int64_t i = 0; i < tile_count(n); i += at_once) {
        const int64_t row = query0 + i * TILE_ROWS, seen = tile_min(n_k, row + TILE_ROWS - key0);
        for (int64_t p = 0; seen > 0 && p < panel_count(d_qk); p++)
            tile_product(at_once, seen, t->dscore_tiles + i * tile_step(KEYS), tile_step(KEYS),
                         t->k + p * panel_step(KEYS), t->dq + (p * padded(hd->T) + row) * TILE_COLS,
                         TILE_COLS, true, NULL);
    }
}

/* dk, dv of a block of keys to dkv, and the shared part to this head's dpe. */
static void store_keys(struct tiles *t, const struct head *hd, void *dkv, int64_t key0, int64_t n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v;
    const int64_t first = hd->kv + key0 * hd->kv_stride;
    for (int64_t p = 0; p < panel_count(n); p++)
        pack_transpose(t->rows + p * TILE_COLS * d_qk, d_qk, t->dk + p * padded(d_qk) * TILE_COLS,
                       TILE_COLS, d_qk, TILE_COLS);
    store_rows(dkv, hd->dt, first, hd->kv_stride, t->rows, d_qk, n, hd->d_nope);
    store_rows(t->dpe, DTYPE_F32, key0 * hd->d_rope, hd->d_rope, t->rows + hd->d_nope, d_qk, n,
               hd->d_rope);
    for (int64_t p = 0; p < panel_count(n); p++)
        pack_transpose(t->rows + p * TILE_COLS * d_v, d_v, t->dv + p * padded(d_v) * TILE_COLS,
                       TILE_COLS, d_v, TILE_COLS);
    store_rows(dkv, hd->dt, first + hd->d_nope, hd->kv_stride, t->rows, d_v, n, d_v);
}

/* dq of n queries from query0, with the scale that its products had not. */
static void store_queries(struct tiles *t, const struct head *hd, void *dq, int64_t query0,
                          int64_t n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope;
    for (int64_t d0 = 0; d0 < d_qk; d0 += TILE_COLS) {
        const float *from = t->dq + (d0 / TILE_COLS * padded(hd->T) + query0) * TILE_COLS;
        for (int64_t i = 0; i < n; i++, from += TILE_COLS)
            for (int64_t d = 0; d < tile_min(TILE_COLS, d_qk - d0); d++)
                t->rows[i * d_qk + d0 + d] = from[d] * hd->scale;
    }
    store_rows(dq, hd->dt, hd->q + query0 * hd->q_stride, hd->q_stride, t->rows, d_qk, n, d_qk);
}

static void bwd_head(struct tiles *t, const struct head *hd, const struct bwd *x)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope, T = hd->T;
    memset(t->dq, 0, (size_t)(panel_count(d_qk) * padded(T) * TILE_COLS) * sizeof *t->dq);
    for (int64_t query0 = 0; query0 < T; query0 += QUERIES)
        load_queries(t, hd, x, query0, tile_min(QUERIES, T - query0));
    for (int64_t key0 = 0; key0 < T; key0 += KEYS) {
        const int64_t n_k = tile_min(KEYS, T - key0);
        load_block(t, hd, x, key0, n_k);
        for (int64_t query0 = key0; query0 < T; query0 += QUERIES) {
            if (first_key(hd, query0) >= key0 + n_k) break; /* nor does any later query see these */
            bwd_block(t, hd, query0, tile_min(QUERIES, T - query0), key0, n_k);
        }
        store_keys(t, hd, x->dkv, key0, n_k);
    }
    for (int64_t query0 = 0; query0 < T; query0 += QUERIES)
        store_queries(t, hd, x->dq, query0, tile_min(QUERIES, T - query0));
}

/* Add a head's dpe to the sequence's sum, and bring that to dk_pe after the last head. */
static void add_dpe(const struct tiles *t, const struct head *hd, void *dk_pe, float *restrict sum,
                    bool first, bool last)
{
    const int64_t n = (int64_t)hd->T * hd->d_rope;
    const float *restrict dpe = t->dpe;
    for (int64_t i = 0; i < n; i++) sum[i] = first ? dpe[i] : sum[i] + dpe[i];
    for (int64_t row = 0; last && row < hd->T; row++)
        cpu_store(dk_pe, hd->dt, hd->pe + row * hd->pe_stride, sum + row * hd->d_rope, hd->d_rope);
}

void cpu_attention_bwd(struct stream *s, void *dq, void *dkv, void *dk_pe, const void *dout,
                       const void *out, const float *lse, const void *q, const void *kv,
                       const void *k_pe, const int32_t *doc_start, enum dtype dt,
                       const struct attention_shape *shape)
{
    const struct bwd x = {dq, dkv, dk_pe, dout, out, q, kv, k_pe, lse};
    const int64_t n_items = shape->T > 0 ? shape->B * shape->H : 0;
    struct tiles t0;
    check_tiles(place_tiles(&t0, cpu_scratch(s, 0), shape), shape);
#pragma omp parallel num_threads(s->threads)
    {
        struct tiles t;
        place_tiles(&t, cpu_scratch(s, omp_get_thread_num()), shape);
#pragma omp for ordered schedule(static, 1)
        for (int64_t item = 0; item < n_items; item++) {
            const struct head hd = head_of(shape, dt, doc_start, item);
            const int64_t h = item % shape->H;
            bwd_head(&t, &hd, &x);
#pragma omp ordered
            add_dpe(&t, &hd, dk_pe, t0.dpe_sum, h == 0, h == shape->H - 1);
        }
    }
}
