/*
 * product.c - matrix products from tiles (tile.h), the way of Goto and van de Geijn (2008): a piece
 * of B is packed into panels of TILE_COLS columns, which stay in the first level cache while the
 * rows of A, in the second level, go by. See product.h.
 *
 * BF16 operands become F32 when they are packed, which is exact; sums are F32 and rounded once at
 * the end. Nothing depends on row counts but loop bounds, so experts may get any number of rows.
 */
#include "kernels/cpu/product.h"

#include "kernels/cpu/pack.h"

/* About the size of a block of C and the depth of a piece; each dimension is cut into the number of
 * equal parts that comes nearest, none larger than 1.5 times this. */
enum { BLOCK_M = 1024, BLOCK_N = 1024, BLOCK_K = 256 };
enum { MAX_M = BLOCK_M * 3 / 2 + TILE_ROWS, MAX_N = BLOCK_N * 3 / 2 + TILE_COLS };
enum { MAX_K = BLOCK_K * 3 / 2 };
enum { STRIP_TILES = 96 / TILE_ROWS }; /* of A in cache, the same way */
enum { MAX_STRIP = STRIP_TILES * 3 / 2 + 1 };
enum { LEAST_M = 96, LEAST_N = 128 }; /* blocks are not cut smaller than this */
static const double LEAST_FLOP = 4e6; /* nor into less work */

enum {
    PIECE_A = MAX_STRIP * (TILE_ROWS * MAX_K + TILE_GAP), /* F32 elements of scratch */
    PIECE_B = MAX_N / TILE_COLS * (TILE_COLS * MAX_K + TILE_GAP),
};
_Static_assert((PIECE_A + PIECE_B + MAX_M * MAX_N) * sizeof(float) <= CPU_SCRATCH_BYTES,
               "the scratch holds a piece of A, of B and a block of C");

/* The number of parts that n is cut into, none larger than 1.5 times about. */
static int64_t n_parts(int64_t n, int64_t about)
{
    const int64_t parts = (n + about / 2) / about;
    return parts > 0 ? parts : n > 0;
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

/* Rows of B: K x N elements into panels. */
static void pack_rows(float *dst, struct matrix b, int64_t K, int64_t N)
{
    for (int64_t k = 0; k < K; k++) {
        cpu_fetch(b.p, b.dt, (k + 2) * b.stride, N, false);
        pack_across_panels(dst + k * TILE_COLS, panel_step(K), b.p, b.dt, k * b.stride, N);
    }
}

/* The same from B stored [N, K]. */
static void pack_columns(float *dst, struct matrix b, int64_t K, int64_t N)
{
    for (int64_t j = 0; j < N; j += TILE_COLS, dst += panel_step(K))
        pack_panel(dst, b.p, b.dt, j * b.stride, b.stride, tile_min(TILE_COLS, N - j), K);
}

/* M rows of op(A) = A, K deep, into tiles. */
static void pack_strip(float *dst, struct matrix a, int64_t M, int64_t K)
{
    for (int64_t i = 0; i < M; i += TILE_ROWS, dst += tile_step(K)) {
        for (int64_t r = i + TILE_ROWS; r < i + 2 * TILE_ROWS && r < M; r++)
            cpu_fetch(a.p, a.dt, r * a.stride, K, false);
        pack_tile(dst, a.p, a.dt, i * a.stride, a.stride, tile_min(TILE_ROWS, M - i), K);
    }
}

/* The same of op(A) = A transposed, A stored [K, M]. */
static void pack_strip_transposed(float *dst, struct matrix a, int64_t M, int64_t K)
{
    for (int64_t k = 0; k < K; k++) {
        cpu_fetch(a.p, a.dt, (k + 2) * a.stride, M, false);
        pack_across_tiles(dst + k * TILE_ROWS, tile_step(K), a.p, a.dt, k * a.stride, M);
    }
}

/* A block of C, M x N from (m0, n0), and a part of K. */
struct piece {
    const struct product *p;
    int64_t m0, n0, k0, M, N, K;
};

static void pack_b(float *dst, const struct piece *c)
{
    if (c->p->b_transposed)
        pack_columns(dst, at(c->p->b, c->n0, c->k0), c->K, c->N);
    else
        pack_rows(dst, at(c->p->b, c->k0, c->n0), c->K, c->N);
}

static void pack_a(float *dst, const struct piece *c)
{
    if (c->p->a_transposed)
        pack_strip_transposed(dst, at(c->p->a, c->k0, c->m0), c->M, c->K);
    else
        pack_strip(dst, at(c->p->a, c->m0, c->k0), c->M, c->K);
}

/* Strip i of n of a piece. */
static struct piece strip_of(const struct piece *c, int64_t i, int64_t n)
{
    struct piece strip = *c;
    const int64_t tiles = tile_count(c->M), first = i * tiles / n * TILE_ROWS;
    strip.m0 += first;
    strip.M = tile_min((i + 1) * tiles / n * TILE_ROWS, c->M) - first;
    return strip;
}

/* Part i of n of K. */
static struct piece part_of(const struct piece *c, int64_t i, int64_t n)
{
    struct piece part = *c;
    part.k0 = i * c->p->K / n;
    part.K = (i + 1) * c->p->K / n - part.k0;
    return part;
}

/* Rows of m to be fetched while n_tiles are computed. */
static struct tile_ahead ahead_of(struct matrix m, int64_t rows, int64_t cols, int64_t n_tiles)
{
    const int64_t size = (int64_t)dtype_bytes(m.dt);
    return (struct tile_ahead){m.p, cols * size, m.stride * size, rows, rows / n_tiles + 1};
}

static struct tile_ahead ahead_a(const struct piece *c, int64_t n_tiles)
{
    return c->p->a_transposed ? ahead_of(at(c->p->a, c->k0, c->m0), c->K, c->M, n_tiles)
                              : ahead_of(at(c->p->a, c->m0, c->k0), c->M, c->K, n_tiles);
}

/* Share i of n of the rows of B. */
static struct tile_ahead ahead_b(const struct piece *c, int64_t i, int64_t n, int64_t n_tiles)
{
    const int64_t rows = c->p->b_transposed ? c->N : c->K, first = i * rows / n;
    const int64_t n_rows = (i + 1) * rows / n - first;
    return c->p->b_transposed ? ahead_of(at(c->p->b, c->n0 + first, c->k0), n_rows, c->K, n_tiles)
                              : ahead_of(at(c->p->b, c->k0 + first, c->n0), n_rows, c->N, n_tiles);
}

static int64_t strips_of(const struct piece *c)
{
    return c->M > 0 ? n_parts(tile_count(c->M), STRIP_TILES) : 1;
}

/* Block i of C, with no part of K. */
static struct piece block_of(const struct product *p, int64_t i)
{
    const struct cut cut = cut_of(p);
    const int64_t row = i % cut.down, col = i / cut.down;
    const int64_t tiles = tile_count(p->M), panels = panel_count(p->N);
    const int64_t m0 = row * tiles / cut.down * TILE_ROWS;
    const int64_t n0 = col * panels / cut.across * TILE_COLS;
    const int64_t M = tile_min((row + 1) * tiles / cut.down * TILE_ROWS, p->M) - m0;
    const int64_t N = tile_min((col + 1) * panels / cut.across * TILE_COLS, p->N) - n0;
    return (struct piece){p, m0, n0, 0, M, N, 0};
}

/* Whether the panels of scratch are those of the block, all its K. */
static bool is_packed(const struct piece *c, const struct product_scratch *scratch)
{
    return scratch->b == c->p->b.p && scratch->n0 == c->n0;
}

/* c [M, N] F32 = or += op(A) op(B). What is packed next is fetched meanwhile: the next strip of A,
 * and a share of the next part of B; at the end those of the next block. */
static void accumulate_block(const struct piece *block, const struct piece *next, struct matrix c,
                             bool add, struct product_scratch *scratch)
{
    const int64_t n_parts_k = n_parts(block->p->K, BLOCK_K), n_strips = strips_of(block);
    float *const tiles = scratch->p, *const panels = scratch->p + PIECE_A;
    for (int64_t k = 0; k < n_parts_k; k++) {
        const struct piece part = part_of(block, k, n_parts_k);
        const struct piece after = k + 1 < n_parts_k ? part_of(block, k + 1, n_parts_k) : *next;
        if (n_parts_k > 1 || !is_packed(block, scratch)) pack_b(panels, &part);
        scratch->b = n_parts_k == 1 ? block->p->b.p : NULL;
        scratch->n0 = block->n0;
        for (int64_t m = 0; m < n_strips; m++) {
            const struct piece strip = strip_of(&part, m, n_strips);
            const struct piece then = m + 1 < n_strips ? strip_of(&part, m + 1, n_strips)
                                                       : strip_of(&after, 0, strips_of(&after));
            const int64_t n_tiles = tile_count(strip.M) * panel_count(strip.N);
            struct tile_ahead ahead[TILE_AHEAD] = {ahead_a(&then, n_tiles)};
            if (!is_packed(&after, scratch)) ahead[1] = ahead_b(&after, m, n_strips, n_tiles);
            pack_a(tiles, &strip);
            tile_matrix(strip.M, strip.N, strip.K, tiles, tile_step(strip.K), panels,
                        panel_step(strip.K), (float *)c.p + (strip.m0 - block->m0) * c.stride,
                        c.stride, add || k > 0, ahead);
        }
    }
}

void product_block(const struct product *p, int64_t i, const struct product *next, int64_t next_i,
                   struct product_scratch *scratch)
{
    const struct piece block = block_of(p, i);
    struct piece first = {.p = p};
    if (next && next->K > 0) { /* an expert without rows has a gradient, but adds nothing to it */
        first = block_of(next, next_i);
        first = part_of(&first, 0, n_parts(next->K, BLOCK_K));
    }
    const struct matrix c = at(p->c, block.m0, block.n0);
    if (c.dt == DTYPE_F32) {
        accumulate_block(&block, &first, c, p->accumulate, scratch);
        return;
    }
    float *const sum = scratch->p + PIECE_A + PIECE_B;
    const int64_t M = block.M, N = block.N;
    for (int64_t r = 0; p->accumulate && r < M; r++)
        cpu_load(sum + r * N, c.p, c.dt, r * c.stride, N);
    accumulate_block(&block, &first, (struct matrix){sum, DTYPE_F32, N}, p->accumulate, scratch);
    for (int64_t r = 0; r < M; r++) cpu_store(c.p, c.dt, r * c.stride, sum + r * N, N);
}
