/*
 * product.c - matrix products in blocks over the library's F32 product; see product.h.
 *
 * dnnl_sgemm is generated once per CPU and transposition, not per shape: calls with new row counts
 * cost nothing (kernels/bench/grouped.c shows it). BF16 operands are converted to F32 in pieces
 * that stay in cache, which is exact; sums are F32 and rounded once at the end.
 */
#include "kernels/cpu/product.h"

#include "base/err.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

/* About the size of a block of C, and the depth of the pieces that are copied. C is cut into the
 * number of equal parts that comes nearest, so no block is larger than 1.5 times this. The library
 * packs operands anew in every call: blocks are as large as leaves some for several threads. */
enum { BLOCK_M = 768, BLOCK_N = 1024, BLOCK_K = 512 };
enum { MAX_M = BLOCK_M * 3 / 2, MAX_N = BLOCK_N * 3 / 2 };
enum { PAD = 16 }; /* keeps rows of a piece from falling on the same few lines of the cache */

enum {
    PIECE_A = (MAX_M + PAD) * (BLOCK_K + PAD), /* F32 elements of scratch */
    PIECE_B = (MAX_N + PAD) * (BLOCK_K + PAD),
};
_Static_assert((PIECE_A + PIECE_B + MAX_M * MAX_N) * sizeof(float) <= CPU_SCRATCH_BYTES,
               "the scratch holds a piece of A, of B and a block of C");

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

void product_one_thread(void)
{
    omp_set_num_threads(1);
}

void product_sgemm(bool a_transposed, bool b_transposed, int64_t M, int64_t N, int64_t K,
                   float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                   float beta, float *c, int64_t ldc)
{
    const dnnl_status_t status = dnnl_sgemm(a_transposed ? 'T' : 'N', b_transposed ? 'T' : 'N', M,
                                            N, K, alpha, a, lda, b, ldb, beta, c, ldc);
    CHECK(status == dnnl_success, "status %d for M %ld N %ld K %ld", (int)status, (long)M, (long)N,
          (long)K);
}

/* The elements from (row, col) of m. */
static struct matrix at(struct matrix m, int64_t row, int64_t col)
{
    m.p = elem(m.p, m.dt, row * m.stride + col);
    return m;
}

/* Whether to copy an operand into pieces. BF16 always, as F32. F32 only where the library reads the
 * operand in place, as it does in small products, column by column, and the rows lie so far apart
 * that they share lines of the cache: measured 1.5 times faster, copying included, for 512^3. */
static bool is_copied(const struct matrix *m, bool by_column, int64_t M, int64_t N)
{
    const bool in_place = M * N < 263 * (M + N);
    return m->dt != DTYPE_F32 || (in_place && by_column && m->stride % 512 == 0);
}

/* rows x cols elements of m as F32 in buf. */
static struct matrix copy_piece(struct matrix m, int64_t rows, int64_t cols, float *buf)
{
    const int64_t stride = cols + PAD;
    for (int64_t i = 0; i < rows; i++) cpu_load(buf + i * stride, m.p, m.dt, i * m.stride, cols);
    return (struct matrix){buf, DTYPE_F32, stride};
}

int64_t product_blocks(const struct product *p)
{
    return n_parts(p->M, BLOCK_M) * n_parts(p->N, BLOCK_N);
}

/* c [M, N] F32 = beta c + op(A) op(B) for the rows of A from m0 and the columns of B from n0. */
static void accumulate_block(const struct product *p, int64_t m0, int64_t n0, int64_t M, int64_t N,
                             struct matrix c, float beta, float *scratch)
{
    const bool copy_a = is_copied(&p->a, p->a_transposed, M, N);
    const bool copy_b = is_copied(&p->b, !p->b_transposed, M, N);
    const int64_t depth = copy_a || copy_b ? BLOCK_K : p->K;
    for (int64_t k0 = 0; k0 < p->K; k0 += depth) {
        const int64_t K = min64(depth, p->K - k0);
        struct matrix a = p->a_transposed ? at(p->a, k0, m0) : at(p->a, m0, k0);
        struct matrix b = p->b_transposed ? at(p->b, n0, k0) : at(p->b, k0, n0);
        if (copy_a) a = copy_piece(a, p->a_transposed ? K : M, p->a_transposed ? M : K, scratch);
        if (copy_b)
            b = copy_piece(b, p->b_transposed ? N : K, p->b_transposed ? K : N, scratch + PIECE_A);
        product_sgemm(p->a_transposed, p->b_transposed, M, N, K, 1.0f, a.p, a.stride, b.p, b.stride,
                      k0 > 0 ? 1.0f : beta, c.p, c.stride);
    }
}

void product_block(const struct product *p, int64_t i, float *scratch)
{
    const int64_t across = n_parts(p->N, BLOCK_N), down = n_parts(p->M, BLOCK_M);
    const int64_t m0 = i / across * p->M / down, m1 = (i / across + 1) * p->M / down;
    const int64_t n0 = i % across * p->N / across, n1 = (i % across + 1) * p->N / across;
    const int64_t M = m1 - m0, N = n1 - n0;
    const struct matrix c = at(p->c, m0, n0);
    const float beta = p->accumulate ? 1.0f : 0.0f;
    if (c.dt == DTYPE_F32) {
        accumulate_block(p, m0, n0, M, N, c, beta, scratch);
        return;
    }
    float *const sum = scratch + PIECE_A + PIECE_B;
    for (int64_t row = 0; p->accumulate && row < M; row++)
        cpu_load(sum + row * N, c.p, c.dt, row * c.stride, N);
    accumulate_block(p, m0, n0, M, N, (struct matrix){sum, DTYPE_F32, N}, beta, scratch);
    for (int64_t row = 0; row < M; row++) cpu_store(c.p, c.dt, row * c.stride, sum + row * N, N);
}
