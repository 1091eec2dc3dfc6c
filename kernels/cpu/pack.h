/*
 * pack.h - operands of products into the layouts of tile.h. Sources are F32 or BF16; BF16 becomes
 * F32 on the way, which is exact. A source is given by its elements: row i begins at element
 * first + i * stride of src.
 */
#pragma once

#include "base/dtype.h"
#include "kernels/cpu/tile.h"

/* A tile from n rows of K elements; what a tile has more rows is zero. */
void pack_tile(float *tile, const void *src, enum dtype dt, int64_t first, int64_t stride,
               int64_t n, int64_t K);

/* A panel of the transpose of n rows of K elements; what a panel has more columns is zero. */
void pack_panel(float *panel, const void *src, enum dtype dt, int64_t first, int64_t stride,
                int64_t n, int64_t K);

/* n elements are one row of the transpose of A, or one row of B: their part of every tile or panel,
 * step elements from one to the next. The rest of the last is zero. */
void pack_across_tiles(float *tile, int64_t step, const void *src, enum dtype dt, int64_t first,
                       int64_t n);
void pack_across_panels(float *panel, int64_t step, const void *src, enum dtype dt, int64_t first,
                        int64_t n);

/* dst [n_cols, n_rows] = the transpose of src [n_rows, n_cols]; rows dst_row and src_row apart. */
void pack_transpose(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t n_rows,
                    int64_t n_cols);
