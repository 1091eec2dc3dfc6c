/* tile.c - the product of tiles, in vectors of the compiler; see tile.h. */
#include "kernels/cpu/tile.h"

#include <stddef.h>

typedef float vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
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
