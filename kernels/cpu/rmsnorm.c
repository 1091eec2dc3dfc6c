/*
 * rmsnorm.c - y = x * rstd * g with rstd = 1 / sqrt(mean(x^2) + eps), and its backward.
 *
 * Contract: kernels/backend.h. Rows become F32 once, in scratch where they are BF16. A sum over a
 * row is F32 within a piece of BLOCK elements and F64 over the pieces. With h = x * rstd:
 *   dx = rstd * (dy * g - h * mean(dy * g * h)),  dg = sum over tokens of dy * h
 */
#include "kernels/cpu/block.h"

#include <math.h>
#include <omp.h>

/* Backward goes through each row once. dg is summed over parts of the tokens, then over the parts
 * in order; the parts are a function of the number of tokens alone. */
enum { MAX_PARTS = 64, LEAST_PART_ROWS = 16 };

static int64_t part_rows(int64_t N)
{
    const int64_t rows = (N + MAX_PARTS - 1) / MAX_PARTS;
    return rows > LEAST_PART_ROWS ? rows : LEAST_PART_ROWS;
}

static double row_sum_squares(const float *x, int D)
{
    double sum = 0;
    for (int d = 0; d < D; d += BLOCK) {
        const int size = block_size(d, D);
        float piece = 0;
#pragma omp simd reduction(+ : piece)
        for (int j = d; j < d + size; j++) piece += x[j] * x[j];
        sum += (double)piece;
    }
    return sum;
}

void cpu_rmsnorm_fwd(struct stream *s, void *y, float *rstd, const void *x, const float *g,
                     enum dtype dt, const struct norm_shape *shape)
{
    const int D = shape->D, threads = block_threads(s, shape->N * D);
    const int64_t x_stride = shape->x_stride ? shape->x_stride : D;
    const int64_t y_stride = shape->y_stride ? shape->y_stride : D;

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->N; n++) {
        float *const buf = cpu_scratch(s, omp_get_thread_num());
        const float *const x_n = cpu_row(buf, x, dt, n * x_stride, D);
        float *const y_n = cpu_row_begin(buf + D, y, dt, n * y_stride);
        const float scale = (float)(1.0 / sqrt(row_sum_squares(x_n, D) / D + (double)shape->eps));
#pragma omp simd
        for (int d = 0; d < D; d++) y_n[d] = x_n[d] * scale * g[d];
        cpu_row_end(y, dt, n * y_stride, y_n, D);
        rstd[n] = scale;
    }
}

static double row_dot(const float *dy, const float *x, const float *g, int D)
{
    double sum = 0;
    for (int d = 0; d < D; d += BLOCK) {
        const int size = block_size(d, D);
        float piece = 0;
#pragma omp simd reduction(+ : piece)
        for (int j = d; j < d + size; j++) piece += dy[j] * g[j] * x[j];
        sum += (double)piece;
    }
    return sum;
}

struct bwd_args {
    void *dx;
    const void *dy, *x;
    const float *rstd, *g;
    enum dtype dt;
    int D;
    int64_t x_stride, y_stride;
    bool accumulate;
};

/* dx of token n, and dg += its share; buf [3, D]. */
static void row_bwd(const struct bwd_args *a, int64_t n, float *restrict dg, float *buf)
{
    const int D = a->D;
    const float *restrict dy = cpu_row(buf, a->dy, a->dt, n * a->y_stride, D);
    const float *restrict x = cpu_row(buf + D, a->x, a->dt, n * a->x_stride, D);
    float *restrict dx = cpu_row_begin(buf + 2 * D, a->dx, a->dt, n * a->x_stride);
    const float *restrict g = a->g;
    const double rstd = (double)a->rstd[n];
    const float along = (float)(rstd * rstd * rstd * row_dot(dy, x, g, D) / D);
    const float across = a->rstd[n];
    if (a->accumulate) {
        cpu_row(dx, a->dx, a->dt, n * a->x_stride, D); /* F32 is there already */
        for (int d = 0; d < D; d++) {
            dx[d] += across * dy[d] * g[d] - along * x[d];
            dg[d] += dy[d] * (x[d] * across);
        }
    } else {
        for (int d = 0; d < D; d++) {
            dx[d] = across * dy[d] * g[d] - along * x[d];
            dg[d] += dy[d] * (x[d] * across);
        }
    }
    cpu_row_end(a->dx, a->dt, n * a->x_stride, dx, D);
}

void cpu_rmsnorm_bwd(struct stream *s, void *dx, float *dg, const void *dy, const void *x,
                     const float *rstd, const float *g, enum dtype dt,
                     const struct norm_shape *shape, bool accumulate)
{
    const int D = shape->D, threads = block_threads(s, shape->N * D);
    const int64_t rows = part_rows(shape->N), n_parts = (shape->N + rows - 1) / rows;
    const struct bwd_args args = {.dx = dx,
                                  .dy = dy,
                                  .x = x,
                                  .rstd = rstd,
                                  .g = g,
                                  .dt = dt,
                                  .D = D,
                                  .x_stride = shape->x_stride ? shape->x_stride : D,
                                  .y_stride = shape->y_stride ? shape->y_stride : D,
                                  .accumulate = accumulate};
    float *const parts = cpu_scratch(s, 0); /* [n_parts, D] */

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t p = 0; p < n_parts; p++) {
        float *const buf = cpu_scratch(s, omp_get_thread_num()) + (int64_t)MAX_PARTS * D;
        memset(parts + p * D, 0, (size_t)D * sizeof *parts);
        for (int64_t n = p * rows; n < (p + 1) * rows && n < shape->N; n++)
            row_bwd(&args, n, parts + p * D, buf);
    }
    for (int64_t p = 0; p < n_parts; p++)
        for (int d = 0; d < D; d++) dg[d] += parts[p * D + d];
}
