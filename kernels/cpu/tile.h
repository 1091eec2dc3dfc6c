/*
 * tile.h - the innermost product of the CPU backend: a few rows of A times a panel of columns of B,
 * with all sums in registers. product.c builds matrix products from it, attention_*.c its tiles.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The widest vectors of the machine we compile for. A tile of C is TILE_ROWS rows of two vectors:
 * as many sums as leave registers for two vectors of B and one broadcast element of A. */
#ifdef __AVX512F__
enum { VECTOR_BYTES = 64, TILE_ROWS = 12 };
#elif defined(__AVX__)
enum { VECTOR_BYTES = 32, TILE_ROWS = 6 };
#else
enum { VECTOR_BYTES = 16, TILE_ROWS = 6 };
#endif
enum { LANES = VECTOR_BYTES / sizeof(float), TILE_COLS = 2 * LANES };
enum { TILE_LINE = 64 / sizeof(float) }; /* elements of a line of the cache */

/* Element (i, k) of A at p[i * row + k * k_step]; so a transposed A costs nothing. */
struct tile_a {
    const float *p;
    int64_t row, k_step;
};

/* Row k of B, TILE_COLS elements, at p + k * k_step. */
struct tile_b {
    const float *p;
    int64_t k_step;
};

/* c [rows, TILE_COLS], rows c_row apart, = A B, or += when add; 1 <= rows <= TILE_ROWS, K >= 0. */
void tile_product(int rows, int64_t K, struct tile_a a, struct tile_b b, float *c, int64_t c_row,
                  bool add);

/* M rows in tiles of nearly equal height (a last tile of one row would waste most of its loads):
 * the rows of tile i begin at tile_first(M, i), and tile_first(M, tile_count(M)) is M. */
static inline int64_t tile_count(int64_t M)
{
    return (M + TILE_ROWS - 1) / TILE_ROWS;
}
static inline int64_t tile_first(int64_t M, int64_t i)
{
    return i * M / tile_count(M);
}

/* n rounded up to whole panels of columns. */
static inline int64_t tile_pad(int64_t n)
{
    return (n + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
}

/* c [M, N] = A B or += A B, N a multiple of TILE_COLS; panel j of B begins b_panel elements after
 * panel j - 1. For operands that lie in cache. */
void tile_matrix(int64_t M, int64_t N, int64_t K, struct tile_a a, struct tile_b b, int64_t b_panel,
                 float *c, int64_t c_row, bool add);

/* Begin to fetch n elements. Rows far apart come one by one otherwise: the processor looks ahead
 * within a row only. */
static inline void tile_fetch(const void *p, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)p + i);
}

/* dst [n_cols, dst_row]: the transpose of src [n_rows, n_cols] whose rows lie src_row apart. */
void tile_transpose(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t n_rows,
                    int64_t n_cols);
