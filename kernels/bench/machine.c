/*
 * machine.c - the denominators: what all threads together reach in products, and memory.
 * usage: machine [threads]
 */
#include "kernels/backend.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const struct backend *be = &backend_cpu;
    struct stream *s = be->stream_create(threads);
    printf("# threads %d, peak %.1f GFLOP/s F32, %.1f GFLOP/s BF16, memory %.1f GB/s\n", threads,
           be->measure_peak(s, DTYPE_F32) * 1e-9, be->measure_peak(s, DTYPE_BF16) * 1e-9,
           be->measure_bandwidth(s) * 1e-9);
    be->stream_destroy(s);
    return 0;
}
