/*
 * product.h - one matrix product, cut into blocks of C that threads share out. Used by linear.c and
 * grouped.c. The cut depends on the shape only, and one block is computed by one thread with a
 * library call that sees one thread, so results do not depend on the number of threads.
 */
#pragma once

#include "kernels/cpu/cpu.h"

/* A matrix in memory: row i begins at element i * stride of p. */
struct matrix {
    void *p;
    enum dtype dt;
    int64_t stride;
};

/* C [M, N] = or += op(A) op(B); A is stored [K, M] when a_transposed, else [M, K]; B is stored
 * [N, K] when b_transposed, else [K, N]. A and B are of one dtype; C is F32 or that dtype.
 * M and N may be 0; K only when the product is added. */
struct product {
    int64_t M, N, K;
    struct matrix a, b, c;
    bool a_transposed, b_transposed, accumulate;
};

int64_t product_blocks(const struct product *p); /* 0 when C is empty */

/* Compute block i of C with the calling thread's scratch, which no one else may use meanwhile. */
void product_block(const struct product *p, int64_t i, float *scratch);

/* C [M, N] = alpha op(A) op(B) + beta C, all F32, row-major with leading dimensions; M, N and K may
 * not be 0. On the calling thread alone if after product_one_thread. */
void product_sgemm(bool a_transposed, bool b_transposed, int64_t M, int64_t N, int64_t K,
                   float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                   float beta, float *c, int64_t ldc);

/* Every thread of a parallel region calls this first: the library's own loops then stay on the
 * calling thread, also when the region has only one. Undone at the region's end. */
void product_one_thread(void);
