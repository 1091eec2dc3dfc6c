/*
 * rmsnorm.c - y = x * rstd * g with rstd = 1 / sqrt(mean(x^2) + eps), and its backward.
 *
 * Contract: kernels/backend.h. The sum over a row is F32 within a piece of BLOCK elements and F64
 * over the pieces. With h = x * rstd:
 *   dx = rstd * (dy * g - h * mean(dy * g * h)),  dg = sum over tokens of dy * h
 */
#include "kernels/cpu/block.h"

#include <math.h>

/* Backward goes through the tokens in groups: first dx, rows over the threads, then dg from the
 * same rows, still in cache, columns over the threads. So each element of dg is summed in token
 * order by one thread. Several threads meet after every half of a group, so theirs are larger. */
enum { GROUP_ROWS = 32, GROUP_ROWS_PER_THREAD = 128, GROUP_COLS = 128 };

static double row_sum_squares(const void *x, enum dtype dt, int64_t first, int D)
{
    float buf[BLOCK];
    double sum = 0;
    for (int d = 0; d < D; d += BLOCK) {
        const int size = block_size(d, D);
        const float *x_d = cpu_row(buf, x, dt, first + d, size);
        float part = 0;
#pragma omp simd reduction(+ : part)
        for (int j = 0; j < size; j++) part += x_d[j] * x_d[j];
        sum += (double)part;
    }
    return sum;
}

static void row_fwd(void *y, int64_t y_first, const void *x, int64_t x_first, float rstd,
                    const float *g, enum dtype dt, int D)
{
    float x_buf[BLOCK], y_buf[BLOCK];
    for (int d = 0; d < D; d += BLOCK) {
        const int size = block_size(d, D);
        const float *x_d = cpu_row(x_buf, x, dt, x_first + d, size);
        float *y_d = cpu_row_begin(y_buf, y, dt, y_first + d);
#pragma omp simd
        for (int j = 0; j < size; j++) y_d[j] = x_d[j] * rstd * g[d + j];
        cpu_row_end(y, dt, y_first + d, y_d, size);
    }
}

void cpu_rmsnorm_fwd(struct stream *s, void *y, float *rstd, const void *x, const float *g,
                     enum dtype dt, const struct norm_shape *shape)
{
    const int D = shape->D, threads = block_threads(s, shape->N * D);
    const int64_t x_stride = shape->x_stride ? shape->x_stride : D;
    const int64_t y_stride = shape->y_stride ? shape->y_stride : D;

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->N; n++) {
        const double mean = row_sum_squares(x, dt, n * x_stride, D) / D;
        rstd[n] = (float)(1.0 / sqrt(mean + (double)shape->eps));
        row_fwd(y, n * y_stride, x, n * x_stride, rstd[n], g, dt, D);
    }
}

static double row_dot(const void *dy, int64_t y_first, const void *x, int64_t x_first,
                      const float *g, enum dtype dt, int D)
{
    float dy_buf[BLOCK], x_buf[BLOCK];
    double sum = 0;
    for (int d = 0; d < D; d += BLOCK) {
        const int size = block_size(d, D);
        const float *dy_d = cpu_row(dy_buf, dy, dt, y_first + d, size);
        const float *x_d = cpu_row(x_buf, x, dt, x_first + d, size);
        float part = 0;
#pragma omp simd reduction(+ : part)
        for (int j = 0; j < size; j++) part += dy_d[j] * g[d + j] * x_d[j];
        sum += (double)part;
    }
    return sum;
}

struct bwd_args {
    void *dx;
    float *dg;
    const void *dy, *x;
    const float *rstd, *g;
    enum dtype dt;
    int D;
    int64_t x_stride, y_stride;
    bool accumulate;
};

static void row_bwd(const struct bwd_args *a, int64_t n)
{
    float dy_buf[BLOCK], x_buf[BLOCK], dx_buf[BLOCK];
    const int64_t y_first = n * a->y_stride, x_first = n * a->x_stride;
    const double rstd = (double)a->rstd[n];
    const double dot = row_dot(a->dy, y_first, a->x, x_first, a->g, a->dt, a->D);
    const float along = (float)(rstd * rstd * rstd * dot / a->D), across = a->rstd[n];

    for (int d = 0; d < a->D; d += BLOCK) {
        const int size = block_size(d, a->D);
        const float *dy_d = cpu_row(dy_buf, a->dy, a->dt, y_first + d, size);
        const float *x_d = cpu_row(x_buf, a->x, a->dt, x_first + d, size);
        const float *g_d = a->g + d;
        float *dx_d = cpu_row_begin(dx_buf, a->dx, a->dt, x_first + d);
        if (a->accumulate) {
            const float *old = cpu_row(dx_buf, a->dx, a->dt, x_first + d, size);
#pragma omp simd
            for (int j = 0; j < size; j++)
                dx_d[j] = old[j] + (across * dy_d[j] * g_d[j] - along * x_d[j]);
        } else {
#pragma omp simd
            for (int j = 0; j < size; j++) dx_d[j] = across * dy_d[j] * g_d[j] - along * x_d[j];
        }
        cpu_row_end(a->dx, a->dt, x_first + d, dx_d, size);
    }
}

/* dg[d .. d + size - 1] over the tokens of one group. */
static void gain_bwd(const struct bwd_args *a, int64_t begin, int64_t end, int d, int size)
{
    float dy_buf[BLOCK], x_buf[BLOCK];
    float *dg = a->dg + d;
    for (int64_t n = begin; n < end; n++) {
        const float *dy_d = cpu_row(dy_buf, a->dy, a->dt, n * a->y_stride + d, size);
        const float *x_d = cpu_row(x_buf, a->x, a->dt, n * a->x_stride + d, size);
        const float rstd = a->rstd[n];
#pragma omp simd
        for (int j = 0; j < size; j++) dg[j] += dy_d[j] * (x_d[j] * rstd);
    }
}

void cpu_rmsnorm_bwd(struct stream *s, void *dx, float *dg, const void *dy, const void *x,
                     const float *rstd, const float *g, enum dtype dt,
                     const struct norm_shape *shape, bool accumulate)
{
    const int D = shape->D, threads = block_threads(s, shape->N * D);
    const int64_t group = threads > 1 ? threads * GROUP_ROWS_PER_THREAD : GROUP_ROWS;
    const struct bwd_args args = {.dx = dx,
                                  .dg = dg,
                                  .dy = dy,
                                  .x = x,
                                  .rstd = rstd,
                                  .g = g,
                                  .dt = dt,
                                  .D = D,
                                  .x_stride = shape->x_stride ? shape->x_stride : D,
                                  .y_stride = shape->y_stride ? shape->y_stride : D,
                                  .accumulate = accumulate};

#pragma omp parallel num_threads(threads) if (threads > 1)
    for (int64_t begin = 0; begin < shape->N; begin += group) {
        const int64_t end = begin + group < shape->N ? begin + group : shape->N;
#pragma omp for
        for (int64_t n = begin; n < end; n++) row_bwd(&args, n);
#pragma omp for
        for (int d = 0; d < D; d += GROUP_COLS)
            gain_bwd(&args, begin, end, d, D - d < GROUP_COLS ? D - d : GROUP_COLS);
    }
}
