/*
 * elementwise.c - casts, sums and copies of whole arrays, and the two sums over whole arrays.
 *
 * Contract: kernels/backend.h. Memory bound.
 */
#include "kernels/cpu/block.h"

#include "base/err.h"

#include <float.h>
#include <math.h>

/* Part t of bytes that the threads share out, at whole lines of the cache. */
static size_t share_begin(size_t bytes, int t, int threads)
{
    return t == threads ? bytes : bytes / (size_t)threads * (size_t)t & ~(size_t)63;
}

void cpu_copy(struct stream *s, void *dst, const void *src, size_t bytes)
{
    const int threads = block_threads(s, (int64_t)(bytes / sizeof(float)));

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const size_t begin = share_begin(bytes, t, threads);
        const size_t n = share_begin(bytes, t + 1, threads) - begin;
        if (n > 0) memcpy((char *)dst + begin, (const char *)src + begin, n);
    }
}

void cpu_zero(struct stream *s, void *p, size_t bytes)
{
    const int threads = block_threads(s, (int64_t)(bytes / sizeof(float)));

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const size_t begin = share_begin(bytes, t, threads);
        const size_t n = share_begin(bytes, t + 1, threads) - begin;
        if (n > 0) memset((char *)p + begin, 0, n);
    }
}

void cpu_cast(struct stream *s, void *dst, enum dtype dst_dt, const void *src, enum dtype src_dt,
              int64_t n)
{
    const int threads = block_threads(s, n);
    CHECK(dst_dt <= DTYPE_BF16 && src_dt <= DTYPE_BF16, "cast from %s to %s: only f32 and bf16",
          dtype_name(src_dt), dtype_name(dst_dt));

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int size = block_size(i, n);
        if (dst_dt == src_dt)
            memcpy(elem(dst, dst_dt, i), elem(src, dst_dt, i), (size_t)size * dtype_bytes(dst_dt));
        else if (dst_dt == DTYPE_F32)
            cpu_load((float *)dst + i, src, src_dt, i, size);
        else
            cpu_store(dst, dst_dt, i, (const float *)src + i, size);
    }
}

void cpu_add(struct stream *s, void *y, const void *a, enum dtype dt, const void *b,
             enum dtype b_dt, int64_t n)
{
    const int threads = block_threads(s, n);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n; i += BLOCK) {
        float a_buf[BLOCK], b_buf[BLOCK], y_buf[BLOCK];
        const int size = block_size(i, n);
        const float *a_i = cpu_row(a_buf, a, dt, i, size);
        const float *b_i = cpu_row(b_buf, b, b_dt, i, size);
        float *y_i = cpu_row_begin(y_buf, y, dt, i);
#pragma omp simd
        for (int j = 0; j < size; j++) y_i[j] = a_i[j] + b_i[j];
        cpu_row_end(y, dt, i, y_i, size);
    }
}

void cpu_copy_rows(struct stream *s, void *dst, int64_t dst_stride, const void *src,
                   int64_t src_stride, enum dtype dt, int64_t rows, int cols)
{
    const int threads = block_threads(s, rows * cols);
    const size_t row_bytes = (size_t)cols * dtype_bytes(dt);
    if (dst_stride == 0) dst_stride = cols;
    if (src_stride == 0) src_stride = cols;

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < rows; n++)
        memcpy(elem(dst, dt, n * dst_stride), elem(src, dt, n * src_stride), row_bytes);
}

/* A sum of n terms is cut into PARTS contiguous parts whatever the number of threads, so that its
 * order is a function of n alone. */
enum { PARTS = 64 };

static double part_sum(const float *x, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    return sum;
}

static double square(float x)
{
    return (double)x * (double)x;
}

/* Four sums at once, of four quarters: each addition to one sum waits for the one before. */
static double part_sum_squares(const float *x, int64_t n)
{
    const int64_t q = n / 4;
    double a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
    for (int64_t i = 0; i < q; i++) {
        a += square(x[i]);
        b += square(x[q + i]);
        c += square(x[2 * q + i]);
        d += square(x[3 * q + i]);
    }
    for (int64_t i = 4 * q; i < n; i++) d += square(x[i]);
    return a + b + (c + d);
}

static double sum_in_parts(const struct stream *s, double (*part)(const float *, int64_t),
                           const float *x, int64_t n)
{
    const int threads = block_threads(s, n);
    double sums[PARTS], sum = 0;

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int p = 0; p < PARTS; p++) {
        const int64_t begin = n * p / PARTS, end = n * (p + 1) / PARTS;
        sums[p] = part(x + begin, end - begin);
    }
    for (int p = 0; p < PARTS; p++) sum += sums[p];
    return sum;
}

void cpu_sum_squares(struct stream *s, double *sum, const float *x, int64_t n)
{
    *sum = sum_in_parts(s, part_sum_squares, x, n);
}

void cpu_sum_add(struct stream *s, double *sum, int64_t *n_bad, const float *x, int64_t n)
{
    int64_t n_finite = 0;
#pragma omp simd reduction(+ : n_finite)
    for (int64_t i = 0; i < n; i++) n_finite += fabsf(x[i]) <= FLT_MAX;
    *sum += sum_in_parts(s, part_sum, x, n);
    *n_bad += n - n_finite;
}
