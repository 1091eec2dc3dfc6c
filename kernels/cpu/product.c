/*
 * product.c - matrix products from tiles (tile.h), the way of Goto and van de Geijn (2008): a piece
 * of B is packed into panels of TILE_COLS columns, which stay in the first level cache while the
 * rows of A, in the second level, go by. See product.h.
 *
 * BF16 operands become F32 when they are packed, which is exact; sums are F32 and rounded once at
 * the end. Nothing depends on row counts but loop bounds, so experts may get any number of rows.
 */
#include "kernels/cpu/product.h"

#include "kernels/cpu/tile.h"

/* About the size of a block of C and the depth of a piece; each dimension is cut into the number of
 * equal parts that comes nearest, none larger than 1.5 times this. */
enum { BLOCK_M = 1024, BLOCK_N = 1024, BLOCK_K = 256 };
enum { MAX_M = BLOCK_M * 3 / 2, MAX_N = BLOCK_N * 3 / 2 + TILE_COLS, MAX_K = BLOCK_K * 3 / 2 };
enum { STRIP_TILES = 192 / TILE_ROWS, STRIP = STRIP_TILES * TILE_ROWS }; /* rows of A in cache */
enum { PAD = 16 };                    /* keeps what is read together off the same lines of cache */
enum { LEAST_M = 96, LEAST_N = 128 }; /* blocks are not cut smaller than this */
static const double LEAST_FLOP = 4e6; /* nor into less work */

enum {
    PIECE_A = STRIP_TILES * (TILE_ROWS * MAX_K + PAD) + PAD, /* F32 elements of scratch */
    PIECE_B = MAX_N / TILE_COLS * (TILE_COLS * MAX_K + PAD),
};
_Static_assert((PIECE_A + PIECE_B + MAX_M * MAX_N) * sizeof(float) <= CPU_SCRATCH_BYTES,
               "the scratch holds a piece of A, of B and a block of C");
_Static_assert(1 || 4 * MAX_K <= MAX_N, "four rows of B fit a buffer");

/* The number of parts that n is cut into, none larger than 1.5 times about. */
static int64_t n_parts(int64_t n, int64_t about)
{
    const int64_t parts = (n + about / 2) / about;
    return parts > 0 ? parts : n > 0;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct cut {
    int64_t down, across;
};

/* An element of C is the same sum in the same order however C is cut, so the cut may depend on the
 * number of threads. */
static struct cut cut_of(const struct product *p)
{
    struct cut cut = {n_parts(p->M, BLOCK_M), n_parts(p->N, BLOCK_N)};
    const double flop = 2.0 * (double)p->M * (double)p->N * (double)p->K;
    while (cut.down * cut.across > 0 && cut.down * cut.across < p->blocks &&
           flop / (double)(cut.down * cut.across) > 2 * LEAST_FLOP) {
        const int64_t M = p->M / cut.down, N = p->N / cut.across;
        if (M < 2 * LEAST_M && N < 2 * LEAST_N) break;
        if (N >= 2 * LEAST_N && (N >= M || M < 2 * LEAST_M))
            cut.across *= 2;
        else
            cut.down *= 2;
    }
    return cut;
}

int64_t product_blocks(const struct product *p)
{
    const struct cut cut = cut_of(p);
    return cut.down * cut.across;
}

/* The elements from (row, col) of m. */
static struct matrix at(struct matrix m, int64_t row, int64_t col)
{
    m.p = elem(m.p, m.dt, row * m.stride + col);
    return m;
}

static void fetch_row(struct matrix m, int64_t row, int64_t n)
{
    tile_fetch(elem(m.p, m.dt, row * m.stride), n * (int64_t)dtype_bytes(m.dt));
}

/* Elements from one packed panel of B, K deep, or tile of A to the next. */
static int64_t panel_step(int64_t K)
{
    return K * TILE_COLS + PAD;
}
static int64_t tile_step(int64_t K)
{
    return K * TILE_ROWS + PAD;
}

/* Rows of B: K x N elements into panels [K, TILE_COLS], the last filled up with zeros. */
static void pack_rows(float *dst, struct matrix b, int64_t K, int64_t N)
{
    float buf[MAX_N];
    for (int64_t k = 0; k < K; k++) {
        if (k + 2 < K) fetch_row(b, k + 2, N);
        const float *const row = cpu_row(buf, b.p, b.dt, k * b.stride, N);
        float *to = dst + k * TILE_COLS;
        int64_t j = 0;
        for (; j + TILE_COLS <= N; j += TILE_COLS, to += panel_step(K))
            memcpy(to, row + j, TILE_COLS * sizeof *to);
        if (j == N) continue;
        memset(to, 0, TILE_COLS * sizeof *to);
        memcpy(to, row + j, (size_t)(N - j) * sizeof *to);
    }
}

/* The same from B stored [N, K]. */
static void pack_columns(float *dst, struct matrix b, int64_t K, int64_t N)
{
    float buf[4 * MAX_K];
    for (int64_t j = 0; j < N; j += TILE_COLS, dst += panel_step(K)) {
        const int64_t n = min64(TILE_COLS, N - j);
        if (n < TILE_COLS) memset(dst, 0, (size_t)(K * TILE_COLS) * sizeof *dst);
        if (b.dt == DTYPE_F32) {
            tile_transpose(dst, TILE_COLS, (float *)b.p + j * b.stride, b.stride, n, K);
            continue;
        }
        for (int64_t i = 0; i < n; i += 4) {
            const int64_t rows = min64(4, n - i);
            for (int64_t r = 0; r < rows; r++)
                cpu_load(buf + r * MAX_K, b.p, b.dt, (j + i + r) * b.stride, K);
            tile_transpose(dst + i, TILE_COLS, buf, MAX_K, rows, K);
        }
    }
}

/* A strip of rows of op(A), K deep, as tiles read it. */
struct strip {
    struct tile_a a;
    int64_t tile_step; /* from a tile to the next */
};

/* op(A) = A, copied: rows that lie far apart in memory come from it once, side by side. */
static struct strip load_strip(float *dst, struct matrix a, int64_t M, int64_t K)
{
    const int64_t row = K + PAD;
    for (int64_t i = 0; i < M; i++) {
        if (i + 2 < M) fetch_row(a, i + 2, K);
        cpu_load(dst + i * row, a.p, a.dt, i * a.stride, K);
    }
    return (struct strip){{dst, row, 1}, row * TILE_ROWS};
}

/* op(A) = A transposed, A stored [K, M]: a tile is [K, TILE_ROWS]. The last tile may be written
 * past its rows, which the next k puts right. */
static struct strip pack_strip(float *dst, struct matrix a, int64_t M, int64_t K)
{
    float buf[STRIP + TILE_ROWS];
    for (int64_t k = 0; k < K; k++) {
        if (k + 2 < K) fetch_row(a, k + 2, M);
        cpu_load(buf, a.p, a.dt, k * a.stride, M);
        float *to = dst + k * TILE_ROWS;
        for (int64_t i = 0; i < M; i += TILE_ROWS, to += tile_step(K))
            memcpy(to, buf + i, TILE_ROWS * sizeof *to);
    }
    return (struct strip){{dst, 1, TILE_ROWS}, tile_step(K)};
}

/* A tile at the right edge of C: only cols columns of it exist. */
static void edge_tile(int rows, int64_t K, struct tile_a a, struct tile_b b, float *c,
                      int64_t c_row, int64_t cols, bool add)
{
    float tile[TILE_ROWS * TILE_COLS];
    tile_product(rows, K, a, b, tile, TILE_COLS, false);
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float *const y = &c[i * c_row + j];
            *y = (add ? *y : 0.0f) + tile[i * TILE_COLS + j];
        }
}

/* c [M, N] = or += a strip of A times packed B. */
static void multiply_strip(int64_t M, int64_t N, int64_t K, const struct strip *strip,
                           const float *b, struct matrix c, bool add)
{
    for (int64_t j = 0; j < N; j += TILE_COLS, b += panel_step(K)) {
        const struct tile_b panel = {b, TILE_COLS};
        struct tile_a a = strip->a;
        for (int64_t i = 0; i < M; i += TILE_ROWS, a.p += strip->tile_step) {
            const int rows = (int)min64(TILE_ROWS, M - i);
            float *const y = (float *)c.p + i * c.stride + j;
            if (N - j < TILE_COLS)
                edge_tile(rows, K, a, panel, y, c.stride, N - j, add);
            else
                tile_product(rows, K, a, panel, y, c.stride, add);
        }
    }
}

/* c [M, N] F32 = or += op(A) op(B) for the rows of A from m0 and the columns of B from n0. */
static void accumulate_block(const struct product *p, int64_t m0, int64_t n0, int64_t M, int64_t N,
                             struct matrix c, bool add, float *scratch)
{
    const int64_t parts = n_parts(p->K, BLOCK_K);
    float *const panels = scratch + PIECE_A;
    for (int64_t part = 0; part < parts; part++) {
        const int64_t k0 = part * p->K / parts, K = (part + 1) * p->K / parts - k0;
        if (p->b_transposed)
            pack_columns(panels, at(p->b, n0, k0), K, N);
        else
            pack_rows(panels, at(p->b, k0, n0), K, N);
        for (int64_t i = 0; i < M; i += STRIP) {
            const int64_t rows = min64(STRIP, M - i);
            const struct strip strip = p->a_transposed
                                           ? pack_strip(scratch, at(p->a, k0, m0 + i), rows, K)
                                           : load_strip(scratch, at(p->a, m0 + i, k0), rows, K);
            multiply_strip(rows, N, K, &strip, panels, at(c, i, 0), add || part > 0);
        }
    }
}

void product_block(const struct product *p, int64_t i, float *scratch)
{
    const struct cut cut = cut_of(p);
    const int64_t row = i / cut.across, col = i % cut.across;
    const int64_t m0 = row * p->M / cut.down, M = (row + 1) * p->M / cut.down - m0;
    const int64_t panels = tile_pad(p->N) / TILE_COLS; /* columns are cut between panels */
    const int64_t n0 = col * panels / cut.across * TILE_COLS;
    const int64_t N = min64((col + 1) * panels / cut.across * TILE_COLS, p->N) - n0;
    const struct matrix c = at(p->c, m0, n0);
    if (c.dt == DTYPE_F32) {
        accumulate_block(p, m0, n0, M, N, c, p->accumulate, scratch);
        return;
    }
    float *const sum = scratch + PIECE_A + PIECE_B;
    for (int64_t r = 0; p->accumulate && r < M; r++)
        cpu_load(sum + r * N, c.p, c.dt, r * c.stride, N);
    accumulate_block(p, m0, n0, M, N, (struct matrix){sum, DTYPE_F32, N}, p->accumulate, scratch);
    for (int64_t r = 0; r < M; r++) cpu_store(c.p, c.dt, r * c.stride, sum + r * N, N);
}
