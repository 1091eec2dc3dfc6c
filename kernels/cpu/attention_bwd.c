/*
 * attention_bwd.c - the backward of causal attention on the CPU. Probabilities are made again, tile
 * by tile, from the log-sum-exp that the forward kept. With P = exp(scale q k^T - lse),
 * delta = rowsum(dout * out) and dS = P * (dout v^T - delta) * scale:
 *     dv += P^T dout    dk += dS^T q    dq += dS k
 * (FlashAttention-2, Dao 2023).
 *
 * Contract: kernels/backend.h. Forward: attention_fwd.c. Timing: kernels/bench/attention.c.
 * Keys are the outer loop, so dk and dv of a tile of keys are finished in cache; dq grows in
 * F32 rows of the thread's scratch. The shared part of k takes part in every
 * head: each head's dk_pe is added to the total in the order of the heads.
 */
#include "base/err.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/vexp.h"

#include <omp.h>

/* The caller's arrays. */
struct bwd {
    void *dq, *dkv, *dk_pe;
    const void *dout, *out, *q, *kv, *k_pe;
    const float *lse;
};

/* Buffers of one thread, in its scratch. Rows lie row_step apart. */
struct tiles {
    float *q, *dout, *dq;         /* [T, d_qk], [T, d_v], [T, d_qk] of the whole head */
    float *k, *v;                 /* [KEYS, d_qk], [KEYS, d_v] */
    float *k_columns, *v_columns; /* [d_qk, KEYS], [d_v, KEYS] */
    float *dk, *dv;               /* [KEYS, d_qk], [KEYS, d_v] */
    float *prob, *dscore;         /* [QUERIES, KEYS] */
    float *delta;                 /* [T] */
    float *dpe;                   /* [T, d_rope] contiguous, this head's */
    float *dpe_sum;               /* [T, d_rope], thread 0's, the sum over heads so far */
};

static size_t place_tiles(struct tiles *t, float *scratch, const struct attention_shape *shape)
{
    const int64_t d_qk = shape->d_nope + shape->d_rope, d_v = shape->d_v, T = shape->T;
    const int64_t step_qk = row_step(d_qk), step_v = row_step(d_v);
    float *p = scratch;
    t->q = p, p += T * step_qk;
    t->dout = p, p += T * step_v;
    t->dq = p, p += T * step_qk;
    t->k = p, p += KEYS * step_qk;
    t->v = p, p += KEYS * step_v;
    t->k_columns = p, p += d_qk * KEYS;
    t->v_columns = p, p += d_v * KEYS;
    t->dk = p, p += KEYS * step_qk;
    t->dv = p, p += KEYS * step_v;
    t->prob = p, p += QUERIES * KEYS;
    t->dscore = p, p += QUERIES * KEYS;
    t->delta = p, p += T;
    t->dpe = p, p += T * shape->d_rope;
    t->dpe_sum = p, p += T * shape->d_rope;
    return (size_t)(p - scratch) * sizeof *p;
}

/* delta[t] = dout . out of every query. */
static void make_delta(struct tiles *t, const struct head *hd, const struct bwd *x)
{
    for (int row = 0; row < hd->T; row++) {
        const int64_t i = hd->out + row * hd->out_stride;
        const float *const dout = t->dout + row * row_step(hd->d_v);
        const float *const out = cpu_row(t->v, x->out, hd->dt, i, hd->d_v);
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int d = 0; d < hd->d_v; d++) sum += dout[d] * out[d];
        t->delta[row] = sum;
    }
}

/* One row: prob holds scores and becomes P, dscore holds dout v^T and becomes dS. */
static void score_row(float *restrict prob, float *restrict dscore, float lse, float delta,
                      float scale, struct seen seen, int n)
{
    const int begin = seen.begin < seen.end ? seen.begin : n;
    const int end = seen.begin < seen.end ? seen.end : n;
    for (int j = 0; j < begin; j++) prob[j] = dscore[j] = 0.0f;
#pragma omp simd
    for (int j = begin; j < end; j++) {
        prob[j] = vexp(prob[j] * scale - lse);
        dscore[j] = prob[j] * (dscore[j] - delta) * scale;
    }
    for (int j = end; j < n; j++) prob[j] = dscore[j] = 0.0f;
}

/* The queries from query0 against the n_k keys in t->k and v. */
static void bwd_block(struct tiles *t, const struct head *hd, const struct bwd *x, int query0,
                      int key0, int n_k)
{
    const int d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v;
    const int n_q = hd->T - query0 < QUERIES ? hd->T - query0 : QUERIES;
    const float *const q = t->q + query0 * row_step(d_qk);
    const float *const dout = t->dout + query0 * row_step(d_v);
    multiply_seen(t->prob, q, t->k_columns, n_q, n_k, d_qk, query0, key0);
    multiply_seen(t->dscore, dout, t->v_columns, n_q, n_k, d_v, query0, key0);
    for (int i = 0; i < n_q; i++) {
        const int64_t row = query0 + i;
        score_row(t->prob + i * KEYS, t->dscore + i * KEYS, x->lse[hd->lse + row * hd->lse_stride],
                  t->delta[row], hd->scale, keys_seen(hd, query0 + i, key0, n_k), n_k);
    }
    add_over_queries(t->dv, t->prob, dout, n_q, n_k, d_v, query0, key0);
    add_over_queries(t->dk, t->dscore, q, n_q, n_k, d_qk, query0, key0);
    add_over_keys(t->dq + query0 * row_step(d_qk), t->dscore, t->k, n_q, n_k, d_qk, query0, key0);
}

/* dk, dv of a tile of keys to dkv, and the shared part to this head's dpe. */
static void store_keys(const struct tiles *t, const struct head *hd, void *dkv, int key0, int n)
{
    const int64_t step_qk = row_step(hd->d_nope + hd->d_rope), step_v = row_step(hd->d_v);
    for (int j = 0; j < n; j++) {
        const int64_t key = key0 + j, at = hd->kv + key * hd->kv_stride;
        const float *const dk = t->dk + j * step_qk;
        cpu_store(dkv, hd->dt, at, dk, hd->d_nope);
        cpu_store(dkv, hd->dt, at + hd->d_nope, t->dv + j * step_v, hd->d_v);
        cpu_store(t->dpe, DTYPE_F32, key * hd->d_rope, dk + hd->d_nope, hd->d_rope);
    }
}

static void load_block(struct tiles *t, const struct head *hd, const struct bwd *x, int key0, int n)
{
    const int d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v;
    load_keys(t->k, hd, x->kv, x->k_pe, key0, n);
    load_rows(t->v, x->kv, hd->dt, hd->kv + key0 * hd->kv_stride + hd->d_nope, hd->kv_stride, n,
              d_v);
    turn_rows(t->k_columns, t->k, n, d_qk);
    turn_rows(t->v_columns, t->v, n, d_v);
    memset(t->dk, 0, (size_t)(n * row_step(d_qk)) * sizeof *t->dk);
    memset(t->dv, 0, (size_t)(n * row_step(d_v)) * sizeof *t->dv);
}

static void bwd_head(struct tiles *t, const struct head *hd, const struct bwd *x)
{
    const int d_qk = hd->d_nope + hd->d_rope, T = hd->T;
    load_rows(t->q, x->q, hd->dt, hd->q, hd->q_stride, T, d_qk);
    load_rows(t->dout, x->dout, hd->dt, hd->out, hd->out_stride, T, hd->d_v);
    memset(t->dq, 0, (size_t)(T * row_step(d_qk)) * sizeof *t->dq);
    make_delta(t, hd, x);
    for (int key0 = 0; key0 < T; key0 += KEYS) {
        const int n_k = T - key0 < KEYS ? T - key0 : KEYS;
        load_block(t, hd, x, key0, n_k);
        for (int query0 = key0 / QUERIES * QUERIES; query0 < T; query0 += QUERIES) {
            if (first_key(hd, query0) >= key0 + n_k) break; /* nor does any later query see these */
            bwd_block(t, hd, x, query0, key0, n_k);
        }
        store_keys(t, hd, x->dkv, key0, n_k);
    }
    for (int row = 0; row < T; row++)
        cpu_store(x->dq, hd->dt, hd->q + row * hd->q_stride, t->dq + row * row_step(d_qk), d_qk);
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
    const size_t used = place_tiles(&t0, cpu_scratch(s, 0), shape);
    CHECK(used <= CPU_SCRATCH_BYTES, "T %d with head sizes %d + %d and %d is too large", shape->T,
          shape->d_nope, shape->d_rope, shape->d_v);
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
