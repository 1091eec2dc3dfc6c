/*
 * kernels.h - what the tests of the operations share: shapes, inputs, repeated calls, errors.
 * Inputs are pure functions of a seed; outputs start as 0xFF, which is NaN in F32 and BF16, with
 * guard bytes behind them.
 */
#pragma once

#include "base/rng.h"
#include "kernels/backend.h"
#include "test.h"

#include <math.h>
#include <string.h>

/* N rows of D. Nothing, one, exactly a piece of the CPU loops, ragged, more than one piece, and
 * enough elements that three threads get work. */
static const struct row_shape {
    int64_t N;
    int D;
} row_shapes[] = {{0, 64}, {1, 1}, {1, 512}, {3, 17}, {5, 1030}, {257, 577}};
enum { N_ROW_SHAPES = sizeof row_shapes / sizeof *row_shapes };

static const enum dtype float_types[] = {DTYPE_F32, DTYPE_BF16};

/* One rounding to BF16 is at most 2^-8 of the value; to F32, 2^-24. */
static inline double half_ulp(enum dtype dt)
{
    return dt == DTYPE_BF16 ? 0x1p-8 : 0x1p-24;
}

static inline void *new_bytes(size_t bytes)
{
    void *p = malloc(bytes + 64);
    if (!p) abort();
    return memset(p, 0xFF, bytes + 64);
}

static inline double get(const void *x, enum dtype dt, int64_t i)
{
    return dt == DTYPE_BF16 ? (double)bf16_to_f32(((const bf16 *)x)[i])
                            : (double)((const float *)x)[i];
}

/* n values between -range and range. */
static inline void *new_values(enum dtype dt, int64_t n, const char *seed, double range)
{
    const uint64_t key = rng_key(1, seed);
    void *x = new_bytes((size_t)n * dtype_bytes(dt));
    for (int64_t i = 0; i < n; i++) {
        const double u = (double)(rng_u64(key, (uint64_t)i) >> 11) * 0x1p-52 - 1.0;
        const float v = (float)(u * range);
        if (dt == DTYPE_BF16)
            ((bf16 *)x)[i] = f32_to_bf16(v);
        else
            ((float *)x)[i] = v;
    }
    return x;
}

/* n integers from low to high. */
static inline int32_t *new_ints(int64_t n, const char *seed, int low, int high)
{
    const uint64_t key = rng_key(2, seed);
    int32_t *x = new_bytes((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = low + (int)(rng_u64(key, (uint64_t)i) % (uint64_t)(high - low + 1));
    return x;
}

/* The same numbers in another dtype. */
static inline void *new_cast(enum dtype dt, const void *x, enum dtype x_dt, int64_t n)
{
    void *y = new_bytes((size_t)n * dtype_bytes(dt));
    for (int64_t i = 0; i < n; i++) {
        if (dt == DTYPE_BF16)
            ((bf16 *)y)[i] = f32_to_bf16((float)get(x, x_dt, i));
        else
            ((float *)y)[i] = (float)get(x, x_dt, i);
    }
    return y;
}

static inline double *new_doubles(const void *x, enum dtype dt, int64_t n)
{
    double *y = new_bytes((size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++) y[i] = get(x, dt, i);
    return y;
}

/* Largest |got - want|; Inf when a got is not a number. */
static inline double max_difference(const void *got, enum dtype dt, const double *want, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double difference = fabs(get(got, dt, i) - want[i]);
        if (isnan(difference)) return INFINITY;
        most = fmax(most, difference);
    }
    return most;
}

/* The same, relative to the largest |want|. */
static inline double max_error(const void *got, enum dtype dt, const double *want, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(want[i]));
    return max_difference(got, dt, want, n) / (most > 0 ? most : 1);
}

/* Elements of got (BF16) that differ from want (F32) rounded once. */
static inline int64_t rounded_differently(const void *got, const void *want, int64_t n)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < n; i++)
        differ += ((const bf16 *)got)[i] != f32_to_bf16(((const float *)want)[i]);
    return differ;
}

/*
 * The outputs of run (bytes in all, one after the other), which the caller frees. Checked: the
 * same bits a second time, and with three threads; nothing written behind the end.
 */
static inline void *run_repeatably(const char *what,
                                   void (*run)(struct stream *s, void *out, const void *args),
                                   const void *args, size_t bytes)
{
    static struct stream *stream[2];
    void *out[3];
    char guard[64];

    if (!stream[0]) {
        stream[0] = backend_cpu.stream_create(1);
        stream[1] = backend_cpu.stream_create(3);
    }
    memset(guard, 0xFF, sizeof guard);
    for (int i = 0; i < 3; i++) {
        out[i] = new_bytes(bytes);
        run(stream[i == 2], out[i], args);
        EXPECT(memcmp((char *)out[i] + bytes, guard, sizeof guard) == 0, "%s: wrote too far", what);
    }
    EXPECT(memcmp(out[0], out[1], bytes) == 0, "%s: a second call gives other bits", what);
    EXPECT(memcmp(out[0], out[2], bytes) == 0, "%s: three threads give other bits", what);
    free(out[1]);
    free(out[2]);
    return out[0];
}

/* Largest difference between grad [n] and central differences of f at x [n], relative to the
 * largest of these. f is in double: with steps of 1e-5 its differences are good to about 1e-9. */
static inline double difference_error(double (*f)(const double *x, const void *args), double *x,
                                      const void *args, int64_t n, const void *grad, enum dtype dt)
{
    double *want = new_bytes((size_t)n * sizeof *want);
    for (int64_t i = 0; i < n; i++) {
        const double x_i = x[i], step = 1e-5;
        x[i] = x_i + step;
        const double above = f(x, args);
        x[i] = x_i - step;
        want[i] = (above - f(x, args)) / (2 * step);
        x[i] = x_i;
    }
    const double error = max_error(grad, dt, want, n);
    free(want);
    return error;
}
