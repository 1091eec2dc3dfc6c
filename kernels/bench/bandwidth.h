/*
 * bandwidth.h - rows for the operations that memory bounds: op, shape, dtype, us (median), GB/s
 * over the bytes the operation must at least read and write, and per cent of what a copy of
 * 64 MiB reaches by the same count. Operands that stay in cache may exceed 100.
 */
#pragma once

#include "bench.h"

enum { COPY_BYTES = 64 << 20 };

struct bandwidth {
    struct bench bench;
    double copy; /* bytes/s, read and written */
};

struct copy_job {
    struct bench *b;
    float *dst, *src;
};

static inline void bandwidth_copy(void *job)
{
    const struct copy_job *j = job;
    const int cols = 1024, rows = COPY_BYTES / (cols * (int)sizeof(float));
    j->b->be->copy_rows(j->b->s, j->dst, 0, j->src, 0, DTYPE_F32, rows, cols);
}

static inline void bandwidth_init(struct bandwidth *w, int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    w->bench = (struct bench){.be = &backend_cpu, .s = backend_cpu.stream_create(threads)};
    struct copy_job job = {&w->bench, mem_alloc(COPY_BYTES, "bench"),
                           mem_alloc(COPY_BYTES, "bench")};
    memset(job.src, 1, COPY_BYTES); /* pages of its own, not the one of zeros */
    w->copy = 2.0 * COPY_BYTES / bench_time(bandwidth_copy, &job);
    mem_free(job.dst);
    mem_free(job.src);
    printf("# threads %d, copy %.1f GB/s\n", threads, w->copy * 1e-9);
    printf("op\tshape\tdtype\tus\tGB/s\tcopy%%\n");
}

static inline void bandwidth_free(struct bandwidth *w)
{
    bench_free(&w->bench);
}

/* Times run(job), unless its result was off by more than tolerance: then it gets no time. */
static inline void bandwidth_row(struct bandwidth *w, const char *op, const char *shape,
                                 enum dtype dt, void (*run)(void *job), void *job, int64_t bytes,
                                 double error, double tolerance)
{
    if (!(error <= tolerance)) {
        printf("%s\t%s\t%s\t-\t-\twrong by %.2e\n", op, shape, dtype_name(dt), error);
        return;
    }
    const double seconds = bench_time(run, job), rate = (double)bytes / seconds;
    printf("%s\t%s\t%s\t%.1f\t%.2f\t%.0f\n", op, shape, dtype_name(dt), seconds * 1e6, rate * 1e-9,
           rate / w->copy * 100.0);
    fflush(stdout);
}
