/*
 * attention.h - what the forward and the backward of attention share: the tile sizes, the layout of
 * the operands, loading of tiles, and the mask. Not an interface: kernels/backend.h has that.
 */
#pragma once

#include "kernels/cpu/cpu.h"

/* A tile is QUERIES rows by KEYS columns of the score matrix. Its scores, 36 KB, stay in cache
 * beside the rows of q, k and v; larger tiles waste more work above the diagonal, smaller ones
 * spend more on calling the library (kernels/bench/README.md). */
enum { QUERIES = 96, KEYS = 96 };

/* One head of one sequence: where its rows begin and how far apart they lie, in elements. */
struct head {
    enum dtype dt;
    int T, d_nope, d_rope, d_v;
    int64_t q, q_stride;      /* rows of d_nope + d_rope */
    int64_t kv, kv_stride;    /* rows of d_nope + d_v */
    int64_t pe, pe_stride;    /* rows of d_rope in k_pe */
    int64_t out, out_stride;  /* rows of d_v */
    int64_t lse, lse_stride;  /* elements */
    const int32_t *doc_start; /* [T] of the sequence, or NULL */
    float scale;
};

static inline struct head head_of(const struct attention_shape *a, enum dtype dt,
                                  const int32_t *doc_start, int64_t item)
{
    const int64_t b = item / a->H, h = item % a->H, H = a->H, first = b * a->T;
    const int64_t d_qk = a->d_nope + a->d_rope, d_kv = a->d_nope + a->d_v;
    return (struct head){
        .dt = dt,
        .T = a->T,
        .d_nope = a->d_nope,
        .d_rope = a->d_rope,
        .d_v = a->d_v,
        .q = (first * H + h) * d_qk,
        .q_stride = H * d_qk,
        .kv = (first * H + h) * d_kv,
        .kv_stride = H * d_kv,
        .pe = first * a->k_pe_stride,
        .pe_stride = a->k_pe_stride,
        .out = (first * H + h) * a->d_v,
        .out_stride = H * a->d_v,
        .lse = first * H + h,
        .lse_stride = H,
        .doc_start = doc_start ? doc_start + first : NULL,
        .scale = a->scale,
    };
}

/* rows [n, d] F32 = n rows of d elements, stride apart, from element first of src. Copied also when
 * they are F32: the library's products are faster on rows that lie together. */
static inline void load_rows(float *rows, const void *src, enum dtype dt, int64_t first,
                             int64_t stride, int n, int d)
{
    for (int i = 0; i < n; i++) cpu_load(rows + (int64_t)i * d, src, dt, first + i * stride, d);
}

/* Keys key0 .. key0 + n as rows [d_nope + d_rope]: the head's own part, then the shared one. */
static inline void load_keys(float *k, const struct head *hd, const void *kv, const void *k_pe,
                             int key0, int n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope;
    for (int j = 0; j < n; j++) {
        const int64_t key = key0 + j;
        cpu_load(k + j * d_qk, kv, hd->dt, hd->kv + key * hd->kv_stride, hd->d_nope);
        cpu_load(k + j * d_qk + hd->d_nope, k_pe, hd->dt, hd->pe + key * hd->pe_stride, hd->d_rope);
    }
}

/* The keys of a tile that begins at key0 and has n of them which a query sees: begin .. end of the
 * tile's columns; empty when end <= begin. */
struct seen {
    int begin, end;
};
static inline struct seen keys_seen(const struct head *hd, int query, int key0, int n)
{
    const int first = (hd->doc_start ? hd->doc_start[query] : 0) - key0;
    const int last = query + 1 - key0;
    return (struct seen){first > 0 ? first : 0, last < n ? last : n};
}

/* A query sees no key before this one, nor does any later query: doc_start does not decrease. */
static inline int first_key(const struct head *hd, int query)
{
    return hd->doc_start ? hd->doc_start[query] : 0;
}
