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
#include "kernels/cpu/product.h"
#include "kernels/cpu/vexp.h"

#include <omp.h>

/* The caller's arrays. */
struct bwd {
    void *dq, *dkv, *dk_pe;
    const void *dout, *out, *q, *kv, *k_pe;
    const float *lse;
};

/* Buffers of one thread, in its scratch. */
struct tiles {
    float *q, *dout;      /* [QUERIES, d_qk], [QUERIES, d_v] */
    float *k, *v;         /* [KEYS, d_qk], [KEYS, d_v] */
    float *dk, *dv;       /* the same */
    float *prob, *dscore; /* [QUERIES, KEYS] */
    float *delta;         /* [T] */
    float *dq;            /* [T, d_qk] */
    float *dpe;           /* [T, d_rope], this head's */
    float *dpe_sum;       /* [T, d_rope], thread 0's, the sum over heads so far */
};

static size_t place_tiles(struct tiles *t, float *scratch, const struct attention_shape *shape)
{
    const size_t d_rope = (size_t)shape->d_rope, d_v = (size_t)shape->d_v;
    const size_t d_qk = (size_t)shape->d_nope + d_rope, T = (size_t)shape->T;
    float *p = scratch;
    t->q = p, p += QUERIES * d_qk;
    t->dout = p, p += QUERIES * d_v;
    t->k = p, p += KEYS * d_qk;
    t->v = p, p += KEYS * d_v;
    t->dk = p, p += KEYS * d_qk;
    t->dv = p, p += KEYS * d_v;
    t->prob = p, p += QUERIES * KEYS;
    t->dscore = p, p += QUERIES * KEYS;
    t->delta = p, p += T;
    t->dpe = p, p += T * d_rope;
    t->dq = p, p += T * d_qk;
    t->dpe_sum = p, p += T * d_rope;
    return (size_t)(p - scratch) * sizeof *p;
}

/* delta[t] = dout . out of every query. */
static void make_delta(struct tiles *t, const struct head *hd, const struct bwd *x)
{
    for (int row = 0; row < hd->T; row++) {
        const int64_t i = hd->out + row * hd->out_stride;
        const float *const dout = cpu_row(t->q, x->dout, hd->dt, i, hd->d_v);
        const float *const out = cpu_row(t->k, x->out, hd->dt, i, hd->d_v);
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int d = 0; d < hd->d_v; d++) sum += dout[d] * out[d];
        t->delta[row] = sum;
    }
}

/* One row: prob holds scaled scores and becomes P, dscore holds dout v^T and becomes dS. */
static void score_row(float *restrict prob, float *restrict dscore, float lse, float delta,
                      float scale, struct seen seen, int n)
{
    const int begin = seen.begin < seen.end ? seen.begin : n;
    const int end = seen.begin < seen.end ? seen.end : n;
    for (int j = 0; j < begin; j++) prob[j] = dscore[j] = 0.0f;
#pragma omp simd
    for (int j = begin; j < end; j++) {
        prob[j] = vexp(prob[j] - lse);
        dscore[j] = prob[j] * (dscore[j] - delta) * scale;
    }
    for (int j = end; j < n; j++) prob[j] = dscore[j] = 0.0f;
}

/* The queries from query0 against the n_k keys in t->k and v. */
static void bwd_tile(struct tiles *t, const struct head *hd, const struct bwd *x, int query0,
                     int key0, int n_k)
{
    const int d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v;
    const int n_q = hd->T - query0 < QUERIES ? hd->T - query0 : QUERIES;
    load_rows(t->q, x->q, hd->dt, hd->q + query0 * hd->q_stride, hd->q_stride, n_q, d_qk);
    load_rows(t->dout, x->dout, hd->dt, hd->out + query0 * hd->out_stride, hd->out_stride, n_q,
              d_v);

    product_sgemm(false, true, n_q, n_k, d_qk, hd->scale, t->q, d_qk, t->k, d_qk, 0.0f, t->prob,
                  KEYS);
    product_sgemm(false, true, n_q, n_k, d_v, 1.0f, t->dout, d_v, t->v, d_v, 0.0f, t->dscore, KEYS);
    for (int i = 0; i < n_q; i++) {
        const int64_t row = query0 + i;
        score_row(t->prob + i * KEYS, t->dscore + i * KEYS, x->lse[hd->lse + row * hd->lse_stride],
                  t->delta[row], hd->scale, keys_seen(hd, query0 + i, key0, n_k), n_k);
    }
    product_sgemm(true, false, n_k, d_v, n_q, 1.0f, t->prob, KEYS, t->dout, d_v, 1.0f, t->dv, d_v);
    product_sgemm(true, false, n_k, d_qk, n_q, 1.0f, t->dscore, KEYS, t->q, d_qk, 1.0f, t->dk,
                  d_qk);
    product_sgemm(false, false, n_q, d_qk, n_k, 1.0f, t->dscore, KEYS, t->k, d_qk, 1.0f,
                  t->dq + (int64_t)query0 * d_qk, d_qk);
}

/* dk, dv of a tile of keys to dkv, and the shared part to this head's dpe. */
static void store_keys(const struct tiles *t, const struct head *hd, void *dkv, int key0, int n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope;
    for (int j = 0; j < n; j++) {
        const int64_t key = key0 + j, at = hd->kv + key * hd->kv_stride;
        const float *const dk = t->dk + j * d_qk;
        cpu_store(dkv, hd->dt, at, dk, hd->d_nope);
        cpu_store(dkv, hd->dt, at + hd->d_nope, t->dv + (int64_t)j * hd->d_v, hd->d_v);
        cpu_store(t->dpe, DTYPE_F32, key * hd->d_rope, dk + hd->d_nope, hd->d_rope);
    }
}

static void bwd_head(struct tiles *t, const struct head *hd, const struct bwd *x)
{
    const int d_qk = hd->d_nope + hd->d_rope, d_v = hd->d_v, T = hd->T;
    memset(t->dq, 0, (size_t)T * (size_t)d_qk * sizeof *t->dq);
    make_delta(t, hd, x);
    for (int key0 = 0; key0 < T; key0 += KEYS) {
        const int n_k = T - key0 < KEYS ? T - key0 : KEYS;
        load_keys(t->k, hd, x->kv, x->k_pe, key0, n_k);
        load_rows(t->v, x->kv, hd->dt, hd->kv + key0 * hd->kv_stride + hd->d_nope, hd->kv_stride,
                  n_k, d_v);
        memset(t->dk, 0, (size_t)n_k * (size_t)d_qk * sizeof *t->dk);
        memset(t->dv, 0, (size_t)n_k * (size_t)d_v * sizeof *t->dv);
        for (int query0 = key0 / QUERIES * QUERIES; query0 < T; query0 += QUERIES) {
            if (first_key(hd, query0) >= key0 + n_k) break; /* nor does any later query see these */
            bwd_tile(t, hd, x, query0, key0, n_k);
        }
        store_keys(t, hd, x->dkv, key0, n_k);
    }
    for (int row = 0; row < T; row++)
        cpu_store(x->dq, hd->dt, hd->q + row * hd->q_stride, t->dq + (int64_t)row * d_qk, d_qk);
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
        product_one_thread();
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
