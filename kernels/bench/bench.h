/*
 * bench.h - what the benchmarks share: the clock, the table's rows, random operands.
 *
 * A row is one operation on one shape: op, shape, dtype, ms (median), GFLOP/s, per cent of the
 * stream's measured peak, and a remark. Columns are separated by tabs.
 */
#pragma once

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A measurement repeats until both are reached. */
enum { BENCH_MIN_RUNS = 7, BENCH_MAX_RUNS = 50 };
static const double BENCH_MIN_S = 0.15;

struct bench {
    const struct backend *be;
    struct stream *s;
    double peak; /* FLOP/s */
};

static inline void bench_init(struct bench *b, int argc, char **argv)
{
    b->be = &backend_cpu;
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    b->s = b->be->stream_create(threads);
    b->peak = b->be->measure_peak(b->s, DTYPE_F32);
    printf("# threads %d, peak %.1f GFLOP/s\n", threads, b->peak * 1e-9);
    printf("op\tshape\tdtype\tms\tGFLOP/s\tpeak%%\tremark\n");
}

static inline void bench_free(struct bench *b)
{
    b->be->stream_destroy(b->s);
}

/* n standard normal numbers in dt; free with mem_free. */
static inline void *bench_random(struct bench *b, enum dtype dt, int64_t n, uint64_t key)
{
    float *const x = mem_alloc((size_t)(n + 1) * sizeof *x, "bench");
    rng_fill_normal(x, key, 0, n, 1.0);
    if (dt == DTYPE_F32) return x;
    void *const y = mem_alloc((size_t)(n + 1) * dtype_bytes(dt), "bench");
    b->be->cast(b->s, y, dt, x, DTYPE_F32, n);
    mem_free(x);
    return y;
}

static inline double bench_get(const void *x, enum dtype dt, int64_t i)
{
    return dt == DTYPE_BF16 ? bf16_to_f32(((const bf16 *)x)[i]) : ((const float *)x)[i];
}

static inline int bench_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of run(job), after one run to warm up. */
static inline double bench_time(void (*run)(void *job), void *job)
{
    double times[BENCH_MAX_RUNS], total = 0.0;
    int n = 0;
    run(job);
    while (n < BENCH_MAX_RUNS && (n < BENCH_MIN_RUNS || total < BENCH_MIN_S)) {
        const double start = clock_s();
        run(job);
        times[n] = clock_s() - start;
        total += times[n++];
    }
    qsort(times, (size_t)n, sizeof *times, bench_compare);
    return times[n / 2];
}

static inline void bench_row(struct bench *b, const char *op, const char *shape, enum dtype dt,
                             double seconds, double flop, const char *remark)
{
    printf("%s\t%s\t%s\t%.3f\t%.1f\t%.1f\t%s\n", op, shape, dtype_name(dt), seconds * 1e3,
           flop / seconds * 1e-9, flop / seconds / b->peak * 100.0, remark);
    fflush(stdout);
}

/* A result that the plain loops do not confirm gets no time. */
static inline void bench_wrong(const char *op, const char *shape, enum dtype dt, double error)
{
    printf("%s\t%s\t%s\t-\t-\t-\twrong by %.2e\n", op, shape, dtype_name(dt), error);
}
