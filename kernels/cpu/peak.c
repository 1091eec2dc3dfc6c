/*
 * peak.c - what one stream can reach at best in dense products: the denominator of every "share of
 * peak": a loop of multiply-adds that stays in registers, on all threads of the stream at once.
 */
#include "base/clock.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"

#include <stdlib.h>

/* Enough independent sums to hide the latency of a multiply-add (4 or 5 cycles, two a cycle)
 * without running out of registers. */
enum { N_SUMS = 10 };
static const double MEASURE_S = 0.05; /* or DSV3_PEAK_S: many short runs have no use for it */

/* n rounds of multiply-adds; returns a value that depends on all of them. */
static float multiply_add(int64_t n, float start)
{
    typedef float vector __attribute__((vector_size(VECTOR_BYTES)));
    const vector factor = (vector){} + 0.5f, addend = (vector){} + start;
    vector sum[N_SUMS]; /* all different, or the compiler would keep one for all */
    for (int j = 0; j < N_SUMS; j++) sum[j] = (vector){} + start * (float)j;
    for (int64_t i = 0; i < n; i++) {
#pragma GCC unroll 16
        for (int j = 0; j < N_SUMS; j++) sum[j] = sum[j] * factor + addend;
    }
    float total = 0.0f;
    for (int j = 0; j < N_SUMS; j++)
        for (int lane = 0; lane < LANES; lane++) total += sum[j][lane];
    return total;
}

/* FLOP/s of one thread, the best of several short turns within the seconds. */
static double thread_peak(double seconds)
{
    const double deadline = clock_s() + seconds;
    const int64_t rounds = 100000;
    const double flop = 2.0 * N_SUMS * LANES * (double)rounds;
    volatile float sink = 1.0f;
    double best = 0.0;
    do {
        const double start = clock_s();
        sink = multiply_add(rounds, sink > 0.0f ? 1.0f : 2.0f);
        const double rate = flop / (clock_s() - start);
        best = rate > best ? rate : best;
    } while (clock_s() < deadline);
    return best;
}

/* BF16 products run in F32 arithmetic, so both dtypes have the same peak. */
double cpu_measure_peak(struct stream *s, enum dtype dt)
{
    (void)dt;
    const char *text = getenv("DSV3_PEAK_S");
    const double seconds = text ? atof(text) : MEASURE_S;
    double sum = 0.0;
#pragma omp parallel num_threads(s->threads) reduction(+ : sum)
    sum += thread_peak(seconds);
    return sum;
}
