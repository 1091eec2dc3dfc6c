/* tile.c - the product of tiles, in vectors of the compiler, and packing; see tile.h. */
#include "kernels/cpu/tile.h"

#include <string.h>

typedef float vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef float octet __attribute__((vector_size(32), aligned(4), may_alias));
typedef int octet_mask __attribute__((vector_size(32)));
#define INLINE static inline __attribute__((always_inline))

enum { STEPS = 8 }; /* of k in a round of the loop, their addresses offsets from one pointer */

/* *sum += x * y in one instruction on registers. Left to itself the compiler takes forms of it that
 * move sums about, or loads y again. */
INLINE void multiply_add(vector *sum, vector x, vector y)
{
#if defined(__AVX512F__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(y));
#elif defined(__FMA__)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*sum) : "x"(x), "x"(y));
#else
    *sum += x * y;
#endif
}

INLINE void multiply_step(vector sum[TILE_ROWS][2], const float *a, const float *b)
{
    const vector b0 = *(const vector *)b, b1 = *(const vector *)(b + LANES);
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++) {
        const vector x = a[i] - (vector){}; /* minus zero is a plain broadcast */
        multiply_add(&sum[i][0], x, b0);
        multiply_add(&sum[i][1], x, b1);
    }
}

INLINE void multiply_tile(int64_t K, const float *a, const float *b, float *c, int64_t c_row,
                          bool add)
{
    vector sum[TILE_ROWS][2];
    int64_t k = 0;
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++) {
        for (int j = 0; j < TILE_COLS; j += TILE_LINE) __builtin_prefetch(c + i * c_row + j, 1);
        sum[i][0] = sum[i][1] = (vector){};
    }
    for (; k + STEPS <= K; k += STEPS, a += STEPS * TILE_ROWS, b += STEPS * TILE_COLS) {
#pragma GCC unroll 16
        for (int step = 0; step < STEPS; step++)
            multiply_step(sum, a + step * TILE_ROWS, b + step * TILE_COLS);
    }
    for (; k < K; k++, a += TILE_ROWS, b += TILE_COLS) multiply_step(sum, a, b);
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++) {
        vector *const y = (vector *)(c + i * c_row);
        if (add) sum[i][0] += y[0], sum[i][1] += y[1];
        y[0] = sum[i][0];
        y[1] = sum[i][1];
    }
}

INLINE void fetch_ahead(struct tile_ahead *ahead)
{
    for (int64_t i = 0; i < ahead->per_tile && ahead->rows > 0; i++, ahead->rows--) {
        for (int64_t b = 0; b < ahead->bytes; b += 64) __builtin_prefetch(ahead->row + b, 0, 2);
        ahead->row += ahead->stride;
    }
}

/* The tiles are in here, not the callers: what begins and ends a tile overlaps with its neighbours
 * then, and costs half as much. */
void tile_product(int64_t n_tiles, int64_t K, const float *a, int64_t a_step, const float *b,
                  float *c, int64_t c_row, bool add, struct tile_ahead *ahead)
{
    for (int64_t i = 0; i < n_tiles; i++, a += a_step, c += TILE_ROWS * c_row) {
        for (int m = 0; ahead && m < TILE_AHEAD; m++) fetch_ahead(&ahead[m]);
        multiply_tile(K, a, b, c, c_row, add);
    }
}

/* The rows and columns of a tile that exist. */
static void edge_tile(int64_t rows, int64_t cols, int64_t K, const float *a, const float *b,
                      float *c, int64_t c_row, bool add)
{
    float tile[TILE_ROWS * TILE_COLS];
    tile_product(1, K, a, 0, b, tile, TILE_COLS, false, NULL);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float *const y = &c[i * c_row + j];
            *y = (add ? *y : 0.0f) + tile[i * TILE_COLS + j];
        }
}

void tile_matrix(int64_t M, int64_t N, int64_t K, const float *a, int64_t a_step, const float *b,
                 int64_t b_step, float *c, int64_t c_row, bool add, struct tile_ahead *ahead)
{
    for (int64_t j = 0; j < N; j += TILE_COLS, b += b_step) {
        const int64_t whole = N - j < TILE_COLS ? 0 : M / TILE_ROWS;
        tile_product(whole, K, a, a_step, b, c + j, c_row, add, ahead);
        for (int64_t t = whole; t * TILE_ROWS < M; t++) {
            const int64_t i = t * TILE_ROWS;
            edge_tile(tile_min(M - i, TILE_ROWS), tile_min(N - j, TILE_COLS), K, a + t * a_step, b,
                      c + i * c_row + j, c_row, add);
        }
    }
}

/* Shuffles of two vectors, within each half of four: elements 0 1 of both in turn, 2 3 in turn, the
 * lower and the upper two of both; then the lower and the upper halves of both. */
#define TURN_LOW(x, y) __builtin_shuffle(x, y, (octet_mask){0, 8, 1, 9, 4, 12, 5, 13})
#define TURN_HIGH(x, y) __builtin_shuffle(x, y, (octet_mask){2, 10, 3, 11, 6, 14, 7, 15})
#define LOWER_TWO(x, y) __builtin_shuffle(x, y, (octet_mask){0, 1, 8, 9, 4, 5, 12, 13})
#define UPPER_TWO(x, y) __builtin_shuffle(x, y, (octet_mask){2, 3, 10, 11, 6, 7, 14, 15})
#define LOWER_HALF(x, y) __builtin_shuffle(x, y, (octet_mask){0, 1, 2, 3, 8, 9, 10, 11})
#define UPPER_HALF(x, y) __builtin_shuffle(x, y, (octet_mask){4, 5, 6, 7, 12, 13, 14, 15})

/* The transpose of 8 x 8 elements, of which only n rows are read: the last 8 - n columns of dst are
 * filled with anything. Rows of dst are written in order. */
INLINE void transpose_8x8(float *dst, int64_t dst_row, const float *src, int64_t src_row,
                          const int n)
{
    octet r[8], s[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) r[i] = *(const octet *)(src + (i < n ? i : 0) * src_row);
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

/* Rows of 8 elements are written into a tile: what is too much of one goes where the next begins,
 * which is written after it. */
void tile_pack_rows(float *tile, const float *rows, int64_t row, int64_t n, int64_t K)
{
    enum { LAST = (TILE_ROWS - 1) / 8 * 8 };
    int64_t k = 0;
    for (; n == TILE_ROWS && k + 8 <= K; k += 8) {
        float *const to = tile + k * TILE_ROWS;
        transpose_8x8(to + LAST, TILE_ROWS, rows + LAST * row + k, row, TILE_ROWS - LAST);
        for (int i = LAST - 8; i >= 0; i -= 8)
            transpose_8x8(to + i, TILE_ROWS, rows + i * row + k, row, 8);
    }
    for (; k < K; k++)
        for (int64_t i = 0; i < TILE_ROWS; i++)
            tile[k * TILE_ROWS + i] = i < n ? rows[i * row + k] : 0.0f;
}

void tile_transpose(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t n_rows,
                    int64_t n_cols)
{
    const int64_t whole_rows = n_rows / 8 * 8, whole_cols = n_cols / 8 * 8;
    for (int64_t i = 0; i < whole_rows; i += 8)
        for (int64_t j = 0; j < whole_cols; j += 8)
            transpose_8x8(dst + j * dst_row + i, dst_row, src + i * src_row + j, src_row, 8);
    for (int64_t j = 0; j < n_cols; j++)
        for (int64_t i = j < whole_cols ? whole_rows : 0; i < n_rows; i++)
            dst[j * dst_row + i] = src[i * src_row + j];
}

void tile_pack_columns(float *panel, const float *rows, int64_t row, int64_t n, int64_t K)
{
    tile_transpose(panel, TILE_COLS, rows, row, n, K);
    for (int64_t k = 0; n < TILE_COLS && k < K; k++)
        memset(panel + k * TILE_COLS + n, 0, (size_t)(TILE_COLS - n) * sizeof *panel);
}

void tile_pack_panels(float *panel, int64_t b_step, const float *row, int64_t n)
{
    for (; n >= TILE_COLS; n -= TILE_COLS, row += TILE_COLS, panel += b_step)
        memcpy(panel, row, TILE_COLS * sizeof *panel);
    if (n <= 0) return;
    memset(panel, 0, TILE_COLS * sizeof *panel);
    memcpy(panel, row, (size_t)n * sizeof *panel);
}

void tile_pack_tiles(float *tile, int64_t a_step, const float *row, int64_t n)
{
    enum { COPIED = (TILE_ROWS + 7) / 8 * 8 };
#pragma GCC unroll 4
    for (; n >= COPIED; n -= TILE_ROWS, row += TILE_ROWS, tile += a_step)
        memcpy(tile, row, COPIED * sizeof *tile);
    for (; n > 0; n -= TILE_ROWS, row += TILE_ROWS, tile += a_step)
        for (int64_t i = 0; i < TILE_ROWS; i++) tile[i] = i < n ? row[i] : 0.0f;
}
