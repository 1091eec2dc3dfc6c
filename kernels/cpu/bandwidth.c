/*
 * bandwidth.c - bytes a second between one stream and memory: the denominator for the operations
 * that do little with each element. An update in place, a = f a + b, moves just what it counts (an
 * array that is only written is read first, unseen), over arrays that no cache holds, all threads
 * of the stream at once; the best of several passes.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "kernels/cpu/cpu.h"

static const double MEASURE_S = 0.1;
enum { LENGTH = 32 << 20 }; /* floats: 128 MiB an array */

double cpu_measure_bandwidth(struct stream *s)
{
    const size_t bytes = (size_t)LENGTH * sizeof(float);
    float *a = mem_alloc(bytes, "bandwidth"), *b = mem_alloc(bytes, "bandwidth");
    double total = 0, best = 0;
#pragma omp parallel for num_threads(s->threads)
    for (int64_t i = 0; i < LENGTH; i++) a[i] = b[i] = 1.0f; /* pages where they are used */
    while (total < MEASURE_S) {
        const double start = clock_s();
#pragma omp parallel for simd num_threads(s->threads)
        for (int64_t i = 0; i < LENGTH; i++) a[i] = 0.5f * a[i] + b[i];
        const double seconds = clock_s() - start, rate = 3.0 * (double)bytes / seconds;
        best = rate > best ? rate : best;
        total += seconds;
    }
    mem_free(b);
    mem_free(a);
    return best;
}
