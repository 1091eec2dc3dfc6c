/*
 * pack.c - see pack.h. Rows become columns in registers, 8 x 8 elements at a time. A tile has fewer
 * rows than that: what is written too much goes where its next row begins, and that is written
 * later.
 */
#include "kernels/cpu/pack.h"

#include <string.h>

typedef float octet __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t octet_bits __attribute__((vector_size(32)));
typedef bf16 octet_bf16 __attribute__((vector_size(16), aligned(2), may_alias));
#define INLINE static inline __attribute__((always_inline))

/* *x = elements i .. i + 8. (Not a result: without AVX that has no fixed place.) */
INLINE void load(octet *x, const void *src, const enum dtype dt, int64_t i)
{
    if (dt == DTYPE_F32) {
        *x = *(const octet *)((const float *)src + i);
        return;
    }
    const octet_bf16 half = *(const octet_bf16 *)((const bf16 *)src + i);
    *x = (octet)(__builtin_convertvector(half, octet_bits) << 16);
}

INLINE float load_one(const void *src, const enum dtype dt, int64_t i)
{
    return dt == DTYPE_F32 ? ((const float *)src)[i] : bf16_to_f32(((const bf16 *)src)[i]);
}

/* gcc before 12 knows only the one, clang only the other. */
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef int octet_mask __attribute__((vector_size(32)));
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (octet_mask){__VA_ARGS__})
#endif

/* Shuffles of two vectors, within each half of four: elements 0 1 of both in turn, 2 3 in turn, the
 * lower and the upper two of both; then the lower and the upper halves of both. */
#define TURN_LOW(x, y) SHUFFLE(x, y, 0, 8, 1, 9, 4, 12, 5, 13)
#define TURN_HIGH(x, y) SHUFFLE(x, y, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOWER_TWO(x, y) SHUFFLE(x, y, 0, 1, 8, 9, 4, 5, 12, 13)
#define UPPER_TWO(x, y) SHUFFLE(x, y, 2, 3, 10, 11, 6, 7, 14, 15)
#define LOWER_HALF(x, y) SHUFFLE(x, y, 0, 1, 2, 3, 8, 9, 10, 11)
#define UPPER_HALF(x, y) SHUFFLE(x, y, 4, 5, 6, 7, 12, 13, 14, 15)

/* The transpose of 8 x 8 elements, of which only n rows are read: the last 8 - n columns of dst are
 * filled with anything. Rows of dst are written in order. */
INLINE void transpose_8x8(float *dst, int64_t dst_row, const void *src, const enum dtype dt,
                          int64_t first, int64_t stride, const int n)
{
    octet r[8], s[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) load(&r[i], src, dt, first + (i < n ? i : 0) * stride);
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        s[i] = TURN_LOW(r[i], r[i + 1]);
        s[i + 1] = TURN_HIGH(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        r[i] = LOWER_TWO(s[i], s[i + 2]);
        r[i + 1] = UPPER_TWO(s[i], s[i + 2]);
        r[i + 2] = LOWER_TWO(s[i + 1], s[i + 3]);
        r[i + 3] = UPPER_TWO(s[i + 1], s[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) *(octet *)(dst + i * dst_row) = LOWER_HALF(r[i], r[i + 4]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) *(octet *)(dst + (i + 4) * dst_row) = UPPER_HALF(r[i], r[i + 4]);
}

INLINE void tile_of(float *tile, const void *src, const enum dtype dt, int64_t first,
                    int64_t stride, int64_t n, int64_t K)
{
    enum { LAST = (TILE_ROWS - 1) / 8 * 8 }; /* the first of the rows that are fewer than 8 */
    int64_t k = 0;
    for (; n == TILE_ROWS && k + 8 <= K; k += 8) {
        float *const to = tile + k * TILE_ROWS;
        const int64_t from = first + k;
        transpose_8x8(to + LAST, TILE_ROWS, src, dt, from + LAST * stride, stride,
                      TILE_ROWS - LAST);
        for (int i = LAST - 8; i >= 0; i -= 8)
            transpose_8x8(to + i, TILE_ROWS, src, dt, from + i * stride, stride, 8);
    }
    for (; k < K; k++)
        for (int64_t i = 0; i < TILE_ROWS; i++)
            tile[k * TILE_ROWS + i] = i < n ? load_one(src, dt, first + i * stride + k) : 0.0f;
}

void pack_tile(float *tile, const void *src, enum dtype dt, int64_t first, int64_t stride,
               int64_t n, int64_t K)
{
    if (dt == DTYPE_F32)
        tile_of(tile, src, DTYPE_F32, first, stride, n, K);
    else
        tile_of(tile, src, DTYPE_BF16, first, stride, n, K);
}

INLINE void transpose(float *dst, int64_t dst_row, const void *src, const enum dtype dt,
                      int64_t first, int64_t stride, int64_t n_rows, int64_t n_cols)
{
    const int64_t whole_rows = n_rows / 8 * 8, whole_cols = n_cols / 8 * 8;
    for (int64_t i = 0; i < whole_rows; i += 8)
        for (int64_t j = 0; j < whole_cols; j += 8)
            transpose_8x8(dst + j * dst_row + i, dst_row, src, dt, first + i * stride + j, stride,
                          8);
    for (int64_t j = 0; j < n_cols; j++)
        for (int64_t i = j < whole_cols ? whole_rows : 0; i < n_rows; i++)
            dst[j * dst_row + i] = load_one(src, dt, first + i * stride + j);
}

void pack_transpose(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t n_rows,
                    int64_t n_cols)
{
    transpose(dst, dst_row, src, DTYPE_F32, 0, src_row, n_rows, n_cols);
}

void pack_panel(float *panel, const void *src, enum dtype dt, int64_t first, int64_t stride,
                int64_t n, int64_t K)
{
    if (dt == DTYPE_F32)
        transpose(panel, TILE_COLS, src, DTYPE_F32, first, stride, n, K);
    else
        transpose(panel, TILE_COLS, src, DTYPE_BF16, first, stride, n, K);
    for (int64_t k = 0; n < TILE_COLS && k < K; k++)
        memset(panel + k * TILE_COLS + n, 0, (size_t)(TILE_COLS - n) * sizeof *panel);
}

/* width elements to each place, written in whole octets. */
INLINE void across(float *to, int64_t step, const void *src, const enum dtype dt, int64_t i,
                   int64_t n, const int width)
{
    const int written = (width + 7) / 8 * 8;
#pragma GCC unroll 4
    for (; n >= written; n -= width, i += width, to += step)
#pragma GCC unroll 4
        for (int j = 0; j < written; j += 8) load((octet *)(to + j), src, dt, i + j);
    for (; n > 0; n -= width, i += width, to += step)
        for (int64_t j = 0; j < width; j++) to[j] = j < n ? load_one(src, dt, i + j) : 0.0f;
}

INLINE void across_any(float *to, int64_t step, const void *src, enum dtype dt, int64_t first,
                       int64_t n, const int width)
{
    if (dt == DTYPE_F32)
        across(to, step, src, DTYPE_F32, first, n, width);
    else
        across(to, step, src, DTYPE_BF16, first, n, width);
}

void pack_across_tiles(float *tile, int64_t step, const void *src, enum dtype dt, int64_t first,
                       int64_t n)
{
    across_any(tile, step, src, dt, first, n, TILE_ROWS);
}

void pack_across_panels(float *panel, int64_t step, const void *src, enum dtype dt, int64_t first,
                        int64_t n)
{
    across_any(panel, step, src, dt, first, n, TILE_COLS);
}
