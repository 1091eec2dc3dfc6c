/*
 * product.h - one matrix product, cut into blocks of C that threads share out. Used by linear.c and
 * grouped.c. One block is computed by one thread; every element of C is the same sum whatever the
 * cut, so results do not depend on the number of threads.
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
    int64_t blocks; /* wanted at least, if C is large enough, so that all threads get some */
};

int64_t product_blocks(const struct product *p); /* 0 when C is empty */

/* A thread's scratch (cpu_scratch), for the products of one parallel region; b begins as NULL. */
struct product_scratch {
    float *p;
    const void *b; /* what is packed there: columns from n0 of the B that begins here, or NULL */
    int64_t n0;
};

/* Compute block i of C. Blocks of the same columns follow each other: their B is packed once.
 * next: NULL, or the product of which this thread will probably compute block next_i then; its
 * operands are fetched meanwhile. */
void product_block(const struct product *p, int64_t i, const struct product *next, int64_t next_i,
                   struct product_scratch *scratch);
