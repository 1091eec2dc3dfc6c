/*
 * block.h - how the operations beside the products and attention go through memory: in pieces of
 * at most BLOCK elements of F32 (cpu_row, cpu_row_begin, cpu_row_end of cpu.h). So there is one
 * loop for both dtypes: the result in BF16 is the F32 result rounded once, by construction, and
 * sums over a row have the same order. The buffers of BF16 pieces stay in the first level cache.
 */
#pragma once

#include "kernels/cpu/cpu.h"

enum { BLOCK = 512 };

static inline int block_size(int64_t i, int64_t n)
{
    return n - i < BLOCK ? (int)(n - i) : BLOCK;
}

/* Threads worth waking for so many elements. Results never depend on this number. */
static inline int block_threads(const struct stream *s, int64_t n)
{
    const int64_t worth = 1 + n / 16384; /* a few microseconds of work, the cost of a barrier */
    return worth < s->threads ? (int)worth : s->threads;
}
