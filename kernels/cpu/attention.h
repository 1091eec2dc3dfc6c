/*
 * attention.h - what the forward and the backward of attention share: the tile sizes, the layout of
 * the operands, loading of tiles, and the mask. Not an interface: kernels/backend.h has that.
 */
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"

/* A block is QUERIES rows by KEYS columns of the score matrix. Its scores, 36 KB, stay in cache
 * beside the rows of q, k and v (kernels/bench/README.md). */
enum { QUERIES = 96, KEYS = 96 };
enum { STEP = 24 }; /* rows of a block on the diagonal that are cut off at the same column */
_Static_assert(KEYS % TILE_COLS == 0, "a block is made of whole panels");

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

/* Elements from a row of width d to the next in the buffers: whole panels, and an odd number of
 * them, so that what is read down a column does not fall on the same lines of the cache. */
static inline int64_t row_step(int64_t d)
{
    return tile_pad(d) + (tile_pad(d) / TILE_COLS % 2 ? 0 : TILE_COLS);
}

/* rows [n, row_step(d)] F32 = n rows of d elements, stride apart, from element first of src; zeros
 * after each. */
static inline void load_rows(float *rows, const void *src, enum dtype dt, int64_t first,
                             int64_t stride, int n, int d)
{
    const int64_t step = row_step(d);
    for (int i = 0; i < n; i++, rows += step) {
        cpu_load(rows, src, dt, first + i * stride, d);
        memset(rows + d, 0, (size_t)(step - d) * sizeof *rows);
    }
}

/* Keys key0 .. key0 + n as rows [d_nope + d_rope]: the head's own part, then the shared one. */
static inline void load_keys(float *k, const struct head *hd, const void *kv, const void *k_pe,
                             int key0, int n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope, step = row_step(d_qk);
    for (int j = 0; j < n; j++, k += step) {
        const int64_t key = key0 + j;
        cpu_load(k, kv, hd->dt, hd->kv + key * hd->kv_stride, hd->d_nope);
        cpu_load(k + hd->d_nope, k_pe, hd->dt, hd->pe + key * hd->pe_stride, hd->d_rope);
        memset(k + d_qk, 0, (size_t)(step - d_qk) * sizeof *k);
    }
}

/* columns [d, KEYS] = the transpose of n <= KEYS such rows of width d; zeros after them. */
static inline void turn_rows(float *columns, const float *rows, int n, int d)
{
    if (n < KEYS) memset(columns, 0, (size_t)d * KEYS * sizeof *columns);
    tile_transpose(columns, KEYS, rows, row_step(d), n, d);
}

/* score [n_q, KEYS] = rows [n_q, d] times columns [d, KEYS], where the query (the first is query0)
 * is not before the key (the first is key0); elsewhere some elements are left as they are. */
static inline void multiply_seen(float *score, const float *rows, const float *columns, int n_q,
                                 int n_k, int d, int query0, int key0)
{
    const int64_t step = row_step(d);
    for (int j = 0; j < n_k; j += TILE_COLS) {
        const int first = key0 + j > query0 ? key0 + j - query0 : 0;
        tile_matrix(n_q - first, TILE_COLS, d, (struct tile_a){rows + first * step, step, 1},
                    (struct tile_b){columns + j, KEYS}, 0, score + first * KEYS + j, KEYS, false);
    }
}

/* sum [M, row_step(d)] += a [M, K] times rows [K, d]. */
static inline void add_product(float *sum, int64_t M, int64_t K, struct tile_a a, const float *rows,
                               int d)
{
    const int64_t step = row_step(d);
    tile_matrix(M, tile_pad(d), K, a, (struct tile_b){rows, step}, TILE_COLS, sum, step, true);
}

static inline bool on_diagonal(int n_k, int query0, int key0)
{
    return key0 + n_k > query0;
}

/* sum [n_q, row_step(d)] += p [n_q, KEYS] times rows [n_k, d], where p is zero for keys behind the
 * query; most of those are left out. */
static inline void add_over_keys(float *sum, const float *p, const float *rows, int n_q, int n_k,
                                 int d, int query0, int key0)
{
    const int step = on_diagonal(n_k, query0, key0) ? STEP : n_q;
    for (int i = 0; i < n_q; i += step) {
        const int M = n_q - i < step ? n_q - i : step, seen = query0 + i + M - key0;
        const struct tile_a a = {p + i * KEYS, KEYS, 1};
        if (seen > 0) add_product(sum + i * row_step(d), M, seen < n_k ? seen : n_k, a, rows, d);
    }
}

/* sum [n_k, row_step(d)] += the transpose of such a p times rows [n_q, d]. */
static inline void add_over_queries(float *sum, const float *p, const float *rows, int n_q, int n_k,
                                    int d, int query0, int key0)
{
    const int step = on_diagonal(n_k, query0, key0) ? STEP : n_k;
    for (int j = 0; j < n_k; j += step) {
        const int M = n_k - j < step ? n_k - j : step;
        const int first = key0 + j > query0 ? key0 + j - query0 : 0;
        const struct tile_a a = {p + first * KEYS + j, 1, KEYS};
        if (first < n_q)
            add_product(sum + j * row_step(d), M, n_q - first, a, rows + first * row_step(d), d);
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
