/*
 * tile.h - the innermost product of the CPU backend: tiles of a few rows of A times a panel of
 * columns of B, with all sums of a tile in registers. product.c builds matrix products from it,
 * attention_*.c its own. Both operands are packed (pack.h): laid out in the order in which they are
 * read.
 *
 *   A, M rows and K deep: tiles of TILE_ROWS rows, element (i, k) of a tile at k * TILE_ROWS + i
 *   B, K deep and N columns: panels of TILE_COLS columns, element (k, j) at k * TILE_COLS + j
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

static inline int64_t tile_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From a tile, or a panel, to the next. The gap between them keeps what is read together off the
 * same lines of the cache; packing may fill it. */
enum { TILE_GAP = 16 };
static inline int64_t tile_step(int64_t K)
{
    return K * TILE_ROWS + TILE_GAP;
}
static inline int64_t panel_step(int64_t K)
{
    return K * TILE_COLS + TILE_GAP;
}

static inline int64_t tile_count(int64_t rows)
{
    return (rows + TILE_ROWS - 1) / TILE_ROWS;
}
static inline int64_t panel_count(int64_t cols)
{
    return (cols + TILE_COLS - 1) / TILE_COLS;
}

/* Rows of memory that will be packed next: with every tile per_tile more of them are fetched, from
 * each of TILE_AHEAD matrices. */
enum { TILE_AHEAD = 2 };
struct tile_ahead {
    const char *row;
    int64_t bytes, stride; /* of a row; in bytes from one to the next */
    int64_t rows, per_tile;
};

/* c [n_tiles * TILE_ROWS, TILE_COLS], rows c_row apart, = A B or += A B: tiles that begin a_step
 * elements apart, and one panel. ahead [TILE_AHEAD]: what to fetch meanwhile, or NULL. */
void tile_product(int64_t n_tiles, int64_t K, const float *a, int64_t a_step, const float *b,
                  float *c, int64_t c_row, bool add, struct tile_ahead *ahead);

/* c [M, N] = or += A B for any M and N; panels that begin b_step elements apart. What lies outside
 * of c is not touched. */
void tile_matrix(int64_t M, int64_t N, int64_t K, const float *a, int64_t a_step, const float *b,
                 int64_t b_step, float *c, int64_t c_row, bool add, struct tile_ahead *ahead);
