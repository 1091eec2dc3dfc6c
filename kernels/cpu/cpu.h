/*
 * cpu.h - what the files of the CPU backend share: the stream, rows in F32 or BF16, and the
 * declarations of every operation for the table in backend_cpu.c. Contracts: kernels/backend.h.
 *
 * A stream runs each call to its end before it returns. Loops are shared out over s->threads
 * OpenMP threads by a partition that depends on the shape only, so results have the same bits
 * whatever the number of threads.
 */
#pragma once

#include "base/dtype.h"
#include "kernels/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Address space per thread; pages are committed when an operation first touches them. */
#define CPU_SCRATCH_BYTES ((size_t)256 << 20)

struct stream {
    int threads;
    char *scratch; /* [threads] blocks of CPU_SCRATCH_BYTES */
};

/* Into how many shares to cut work that threads take in turn: enough that the last ones to finish
 * do not keep the others waiting for long. */
static inline int64_t cpu_shares(const struct stream *s)
{
    return s->threads > 1 ? 4 * (int64_t)s->threads : 1;
}

/* The scratch of one thread, ARENA_ALIGN-aligned; its contents last until the operation ends. */
static inline float *cpu_scratch(const struct stream *s, int thread)
{
    return (float *)(s->scratch + (size_t)thread * CPU_SCRATCH_BYTES);
}

/* dst[0..n) = elements i .. i + n of src. */
static inline void cpu_load(float *restrict dst, const void *restrict src, enum dtype dt, int64_t i,
                            int64_t n)
{
    if (dt == DTYPE_F32) {
        memcpy(dst, (const float *)src + i, (size_t)n * sizeof *dst);
        return;
    }
    const bf16 *restrict x = (const bf16 *)src + i;
    for (int64_t j = 0; j < n; j++) dst[j] = bf16_to_f32(x[j]);
}

/* Elements i .. i + n of dst = src[0..n), rounded once. */
static inline void cpu_store(void *restrict dst, enum dtype dt, int64_t i,
                             const float *restrict src, int64_t n)
{
    if (dt == DTYPE_F32) {
        memcpy((float *)dst + i, src, (size_t)n * sizeof *src);
        return;
    }
    bf16 *restrict y = (bf16 *)dst + i;
    for (int64_t j = 0; j < n; j++) y[j] = f32_to_bf16(src[j]);
}

/* Bring elements i .. i + n of p on their way into the cache, to be read or, write, to be written:
 * rows that are needed soon and lie apart, which the processor does not see ahead. It does no harm
 * where there is no memory. */
static inline __attribute__((always_inline)) void cpu_fetch(const void *p, enum dtype dt, int64_t i,
                                                            int64_t n, const bool write)
{
    const char *const row = elem(p, dt, i);
    for (int64_t b = 0; b < n * (int64_t)dtype_bytes(dt); b += 64)
        write ? __builtin_prefetch(row + b, 1) : __builtin_prefetch(row + b, 0);
}

/* Elements i .. i + n of src as F32: in place, or converted into buf [n]. */
static inline const float *cpu_row(float *buf, const void *src, enum dtype dt, int64_t i, int64_t n)
{
    if (dt == DTYPE_F32) return (const float *)src + i;
    cpu_load(buf, src, dt, i, n);
    return buf;
}

/* Where to write elements i .. i + n of dst as F32: in place, or buf [n]. cpu_row_end brings buf
 * there. */
static inline float *cpu_row_begin(float *buf, void *dst, enum dtype dt, int64_t i)
{
    return dt == DTYPE_F32 ? (float *)dst + i : buf;
}
static inline void cpu_row_end(void *dst, enum dtype dt, int64_t i, const float *buf, int64_t n)
{
    if (dt != DTYPE_F32) cpu_store(dst, dt, i, buf, n);
}

void cpu_copy(struct stream *s, void *dst, const void *src, size_t bytes);
void cpu_zero(struct stream *s, void *p, size_t bytes);
void cpu_cast(struct stream *s, void *dst, enum dtype dst_dt, const void *src, enum dtype src_dt,
              int64_t n);
void cpu_add(struct stream *s, void *y, const void *a, enum dtype dt, const void *b,
             enum dtype b_dt, int64_t n);
void cpu_copy_rows(struct stream *s, void *dst, int64_t dst_stride, const void *src,
                   int64_t src_stride, enum dtype dt, int64_t rows, int cols);
void cpu_sum_squares(struct stream *s, double *sum, const float *x, int64_t n);
void cpu_sum_add(struct stream *s, double *sum, int64_t *n_bad, const float *x, int64_t n);

void cpu_linear_fwd(struct stream *s, void *y, enum dtype y_dt, const void *x, const void *w,
                    enum dtype dt, const struct linear_shape *shape);
void cpu_linear_bwd_x(struct stream *s, void *dx, const void *dy, const void *w, enum dtype dt,
                      const struct linear_shape *shape, bool accumulate);
void cpu_linear_bwd_w(struct stream *s, float *dw, const void *dy, const void *x, enum dtype dt,
                      const struct linear_shape *shape);
void cpu_grouped_fwd(struct stream *s, void *y, const void *x, const void *w, enum dtype dt,
                     const struct grouped_shape *shape);
void cpu_grouped_bwd_x(struct stream *s, void *dx, const void *dy, const void *w, enum dtype dt,
                       const struct grouped_shape *shape, bool accumulate);
void cpu_grouped_bwd_w(struct stream *s, float *dw, const void *dy, const void *x, enum dtype dt,
                       const struct grouped_shape *shape);

void cpu_rmsnorm_fwd(struct stream *s, void *y, float *rstd, const void *x, const float *g,
                     enum dtype dt, const struct norm_shape *shape);
void cpu_rmsnorm_bwd(struct stream *s, void *dx, float *dg, const void *dy, const void *x,
                     const float *rstd, const float *g, enum dtype dt,
                     const struct norm_shape *shape, bool accumulate);
void cpu_rope(struct stream *s, void *x, enum dtype dt, const float *table, int64_t first, int T,
              const struct rope_shape *shape, bool inverse);

void cpu_attention_fwd(struct stream *s, void *out, float *lse, const void *q, const void *kv,
                       const void *k_pe, const int32_t *doc_start, enum dtype dt,
                       const struct attention_shape *shape);
void cpu_attention_bwd(struct stream *s, void *dq, void *dkv, void *dk_pe, const void *dout,
                       const void *out, const float *lse, const void *q, const void *kv,
                       const void *k_pe, const int32_t *doc_start, enum dtype dt,
                       const struct attention_shape *shape);

void cpu_attention_cached(struct stream *s, void *out, const void *q, const void *latent,
                          const void *kv_b, enum dtype dt, const struct cached_shape *shape);

void cpu_swiglu_fwd(struct stream *s, void *y, const void *gate, const void *up, enum dtype dt,
                    int64_t n);
void cpu_swiglu_bwd(struct stream *s, void *dgate, void *dup, void *y, const void *dy,
                    const void *gate, const void *up, enum dtype dt, int64_t n);
void cpu_embedding_fwd(struct stream *s, void *x, const void *table, const int32_t *id,
                       enum dtype dt, int64_t N, int D, int row0, int n_rows);
void cpu_embedding_bwd(struct stream *s, float *dtable, const void *dx, const int32_t *id,
                       enum dtype dt, int64_t N, int D, int row0, int n_rows);

void cpu_router_fwd(struct stream *s, float *score, int32_t *expert, float *weight,
                    const float *logits, const float *bias, const int32_t *forced,
                    const struct router_shape *shape);
void cpu_router_bwd(struct stream *s, float *dlogits, const float *dweight, const float *score,
                    const int32_t *expert, const float *coef, const struct sequence_span *span,
                    const struct router_shape *shape);
void cpu_balance_stats(struct stream *s, float *p_sum, int32_t *n_top, const float *score,
                       const struct sequence_span *span, const struct router_shape *shape);
void cpu_balance_loss(struct stream *s, double *loss, float *coef, const float *p_sum,
                      const int32_t *n_top, int64_t B, int T, int E, int K, float weight);
void cpu_bias_update(struct stream *s, float *bias, const int64_t *count, int E, float speed,
                     bool centred);

void cpu_sort_by_expert(struct stream *s, int32_t *order, int32_t *place, int64_t *count,
                        const int32_t *expert, int64_t M, int E);
void cpu_count_add(struct stream *s, int64_t *total, const int64_t *count, int E);
void cpu_gather_rows(struct stream *s, void *dst, const void *src, const int32_t *index,
                     int divisor, enum dtype dt, int64_t M, int D);
void cpu_combine_fwd(struct stream *s, void *y, const void *rows, const int32_t *place,
                     const float *weight, const void *add0, const void *add1, enum dtype dt,
                     int64_t N, int K, int D);
void cpu_combine_bwd(struct stream *s, void *drows, float *dweight, const void *dy,
                     const void *rows, const int32_t *place, const float *weight, enum dtype dt,
                     int64_t N, int K, int D);

void cpu_cross_entropy_max(struct stream *s, float *max, const float *logits, int64_t n, int V);
void cpu_cross_entropy_sum(struct stream *s, float *sum, float *target, const float *logits,
                           const float *max, const int32_t *label, int64_t n, int V, int col0);
void cpu_cross_entropy_loss(struct stream *s, float *loss, void *dlogits, enum dtype dt,
                            const float *logits, const float *max, const float *sum,
                            const float *target, const int32_t *label, float scale, int64_t n,
                            int V, int col0);

void cpu_adamw(struct stream *s, float *p, void *m, void *v, enum dtype m_dt, const float *g,
               int64_t n, const struct adamw_args *args, int32_t *bad);

double cpu_measure_peak(struct stream *s, enum dtype dt);
double cpu_measure_bandwidth(struct stream *s);
