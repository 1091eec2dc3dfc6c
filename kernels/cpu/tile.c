/* tile.c - the product of one tile, in vectors of the compiler; see tile.h. */
#include "kernels/cpu/tile.h"

#include <string.h>

typedef float vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

/* rows and most steps are constants wherever this is inlined: the sums are registers, addresses of
 * several k at once are offsets from one pointer. The fewer instructions there are beside the
 * multiply-adds, the less it costs when another hardware thread shares the core. */
static inline __attribute__((always_inline)) void multiply(const int rows, int64_t K,
                                                           struct tile_a a, struct tile_b b,
                                                           float *c, int64_t c_row, bool add)
{
    vector sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < TILE_COLS; j += TILE_LINE) __builtin_prefetch(c + i * c_row + j, 1);
    for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (vector){};
#pragma GCC unroll 4
    for (int64_t k = 0; k < K; k++, a.p += a.k_step, b.p += b.k_step) {
        const vector b0 = *(const vector *)b.p, b1 = *(const vector *)(b.p + LANES);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const vector x = a.p[i * a.row] - (vector){}; /* minus zero is a plain broadcast */
            sum[i][0] += x * b0;
            sum[i][1] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        vector *const y = (vector *)(c + i * c_row);
        if (add) sum[i][0] += y[0], sum[i][1] += y[1];
        y[0] = sum[i][0];
        y[1] = sum[i][1];
    }
}

static inline __attribute__((always_inline)) void multiply_any(int rows, int64_t K, struct tile_a a,
                                                               struct tile_b b, float *c,
                                                               int64_t c_row, bool add)
{
#define CASE(n)                                                                                    \
    case n: multiply(n, K, a, b, c, c_row, add); break
    switch (rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
#if defined(__AVX512F__)
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
#endif
    }
#undef CASE
}

void tile_product(int rows, int64_t K, struct tile_a a, struct tile_b b, float *c, int64_t c_row,
                  bool add)
{
    const struct tile_b packed = {b.p, TILE_COLS};
    if (b.k_step == TILE_COLS && a.k_step == 1)
        multiply_any(rows, K, (struct tile_a){a.p, a.row, 1}, packed, c, c_row, add);
    else if (b.k_step == TILE_COLS && a.k_step == TILE_ROWS && a.row == 1)
        multiply_any(rows, K, (struct tile_a){a.p, 1, TILE_ROWS}, packed, c, c_row, add);
    else if (a.k_step == 1)
        multiply_any(rows, K, (struct tile_a){a.p, a.row, 1}, b, c, c_row, add);
    else
        multiply_any(rows, K, a, b, c, c_row, add);
}

void tile_matrix(int64_t M, int64_t N, int64_t K, struct tile_a a, struct tile_b b, int64_t b_panel,
                 float *c, int64_t c_row, bool add)
{
    const int64_t n_tiles = M > 0 ? tile_count(M) : 0;
    for (int64_t j = 0; j < N; j += TILE_COLS, b.p += b_panel)
        for (int64_t i = 0; i < n_tiles; i++) {
            const int64_t first = tile_first(M, i);
            const struct tile_a rows = {a.p + first * a.row, a.row, a.k_step};
            tile_product((int)(tile_first(M, i + 1) - first), K, rows, b, c + first * c_row + j,
                         c_row, add);
        }
}

/* A block of 4 x 4, in the vectors that every machine has. */
static inline void transpose_4x4(float *dst, int64_t dst_row, const float *src, int64_t src_row)
{
    typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int mask __attribute__((vector_size(16)));
    const quad r0 = *(const quad *)src, r1 = *(const quad *)(src + src_row);
    const quad r2 = *(const quad *)(src + 2 * src_row), r3 = *(const quad *)(src + 3 * src_row);
    const quad low01 = __builtin_shuffle(r0, r1, (mask){0, 4, 1, 5});
    const quad high01 = __builtin_shuffle(r0, r1, (mask){2, 6, 3, 7});
    const quad low23 = __builtin_shuffle(r2, r3, (mask){0, 4, 1, 5});
    const quad high23 = __builtin_shuffle(r2, r3, (mask){2, 6, 3, 7});
    *(quad *)dst = __builtin_shuffle(low01, low23, (mask){0, 1, 4, 5});
    *(quad *)(dst + dst_row) = __builtin_shuffle(low01, low23, (mask){2, 3, 6, 7});
    *(quad *)(dst + 2 * dst_row) = __builtin_shuffle(high01, high23, (mask){0, 1, 4, 5});
    *(quad *)(dst + 3 * dst_row) = __builtin_shuffle(high01, high23, (mask){2, 3, 6, 7});
}

void tile_transpose(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t n_rows,
                    int64_t n_cols)
{
    const int64_t whole_rows = n_rows / 4 * 4, whole_cols = n_cols / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4)
        for (int64_t j = 0; j < whole_cols; j += 4) {
            const float *const from = src + i * src_row + j;
            if (j % TILE_LINE == 0)
                for (int r = 4; r < 8; r++) __builtin_prefetch(from + r * src_row);
            transpose_4x4(dst + j * dst_row + i, dst_row, from, src_row);
        }
    for (int64_t j = 0; j < n_cols; j++)
        for (int64_t i = j < whole_cols ? whole_rows : 0; i < n_rows; i++)
            dst[j * dst_row + i] = src[i * src_row + j];
}
