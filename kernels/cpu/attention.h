/*
 * attention.h - what the forward and the backward of attention share: the block sizes, a head's
 * place in the operands, keys as rows. Not an interface: kernels/backend.h has that.
 */
#pragma once

#include "base/err.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/pack.h"

/* A block of keys and of queries: so much of q, k, v of common sizes stays in the second cache. */
enum { QUERIES = 96, KEYS = 96 };
_Static_assert(KEYS % TILE_COLS == 0 && QUERIES % TILE_COLS == 0, "blocks are whole panels");
_Static_assert(KEYS % TILE_ROWS == 0 && QUERIES % TILE_ROWS == 0, "and whole tiles");

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

/* A thread's buffers, some of them of whole sequences, take so many bytes. */
static inline void check_tiles(size_t bytes, const struct attention_shape *a)
{
    CHECK(bytes <= CPU_SCRATCH_BYTES, "T %d with head sizes %d + %d and %d is too large", a->T,
          a->d_nope, a->d_rope, a->d_v);
}

/* A head's rows are short and lie far apart; this many are on their way at once. */
enum { ROWS_AHEAD = 8 };

/* rows [n, row] = n rows of d elements, stride apart, from element first of src. */
static inline void load_rows(float *rows, int64_t row, const void *src, enum dtype dt,
                             int64_t first, int64_t stride, int64_t n, int64_t d)
{
    for (int64_t i = 0; i < n; i++, first += stride) {
        cpu_fetch(src, dt, first + ROWS_AHEAD * stride, d, false);
        cpu_load(rows + i * row, src, dt, first, d);
    }
}

/* The other way round. */
static inline void store_rows(void *dst, enum dtype dt, int64_t first, int64_t stride,
                              const float *rows, int64_t row, int64_t n, int64_t d)
{
    for (int64_t i = 0; i < n; i++, first += stride) {
        cpu_fetch(dst, dt, first + ROWS_AHEAD * stride, d, true);
        cpu_store(dst, dt, first, rows + i * row, d);
    }
}

/* Keys key0 .. key0 + n as rows [n, d_nope + d_rope]: the head's own part, then the shared one. */
static inline void load_keys(float *rows, const struct head *hd, const void *kv, const void *k_pe,
                             int64_t key0, int64_t n)
{
    const int64_t d_qk = hd->d_nope + hd->d_rope;
    load_rows(rows, d_qk, kv, hd->dt, hd->kv + key0 * hd->kv_stride, hd->kv_stride, n, hd->d_nope);
    load_rows(rows + hd->d_nope, d_qk, k_pe, hd->dt, hd->pe + key0 * hd->pe_stride, hd->pe_stride,
              n, hd->d_rope);
}

/* Their values as rows [n, d_v]. */
static inline void load_values(float *rows, const struct head *hd, const void *kv, int64_t key0,
                               int64_t n)
{
    load_rows(rows, hd->d_v, kv, hd->dt, hd->kv + key0 * hd->kv_stride + hd->d_nope, hd->kv_stride,
              n, hd->d_v);
}

/* rows [n, d] into tiles, d deep. */
static inline void pack_tiles(float *tile, const float *rows, int64_t n, int64_t d)
{
    for (int64_t i = 0; i < n; i += TILE_ROWS, tile += tile_step(d))
        pack_tile(tile, rows, DTYPE_F32, i * d, d, tile_min(TILE_ROWS, n - i), d);
}

/* The same rows into tiles of the transpose, that begin step elements apart and are n deep. */
static inline void pack_turned_tiles(float *tile, int64_t step, const float *rows, int64_t n,
                                     int64_t d)
{
    for (int64_t i = 0; i < n; i++)
        pack_across_tiles(tile + i * TILE_ROWS, step, rows, DTYPE_F32, i * d, d);
}

/* The same rows into panels of the transpose, d deep. */
static inline void pack_turned_panels(float *panel, const float *rows, int64_t n, int64_t d)
{
    for (int64_t i = 0; i < n; i += TILE_COLS, panel += panel_step(d))
        pack_panel(panel, rows, DTYPE_F32, i * d, d, tile_min(TILE_COLS, n - i), d);
}

/* The first key that a query sees; no later query sees an earlier one. Queries behind the end see
 * what the last one does: nobody looks at them. */
static inline int64_t first_key(const struct head *hd, int64_t query)
{
    return hd->doc_start ? hd->doc_start[tile_min(query, hd->T - 1)] : 0;
}
