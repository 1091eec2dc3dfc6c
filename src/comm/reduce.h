/*
 * reduce.h - the arithmetic of comm_mpi.c's reductions: rows of the members, in axis order, to one.
 * Sums of F32 and BF16 are made in F32 and rounded once. NaN survives a maximum, or a bad number
 * would be lost on the way.
 */
#pragma once

#include "comm/comm.h"

/* out [n] = sum or maximum over r < rows of row[r] [n], in the order of r. out may be one of the
 * rows, and overlaps none otherwise. F32, BF16 (sums), F64 (sums), I32, I64. */
void reduce_rows(void *out, const void *const *row, int rows, int64_t n, enum dtype dt,
                 enum reduce_op op);
