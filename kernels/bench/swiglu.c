/*
 * swiglu.c - time of SwiGLU, forward and backward. Its exponential and division cost more than its
 * memory as long as the operands are in cache.
 * usage: swiglu [threads]
 */
#include "bandwidth.h"

struct job {
    struct bench *b;
    int64_t n;
    enum dtype dt;
    void *gate, *up, *y, *dy, *dgate, *dup;
};

static void run_fwd(void *job)
{
    struct job *j = job;
    j->b->be->swiglu_fwd(j->b->s, j->y, j->gate, j->up, j->dt, j->n);
}

static void run_bwd(void *job)
{
    struct job *j = job;
    j->b->be->swiglu_bwd(j->b->s, j->dgate, j->dup, j->y, j->dy, j->gate, j->up, j->dt, j->n);
}

/* Of every 37th element, relative to 1 + its size. */
static double sample_error(struct job *j)
{
    double error = 0;
    run_fwd(j);
    run_bwd(j);
    for (int64_t i = 0; i < j->n; i += 37) {
        const double g = bench_get(j->gate, j->dt, i), u = bench_get(j->up, j->dt, i);
        const double dy = bench_get(j->dy, j->dt, i), s = 1 / (1 + exp(-g));
        const double want[] = {g * s * u, dy * u * s * (1 + g * (1 - s)), dy * g * s};
        const void *got[] = {j->y, j->dgate, j->dup};
        for (int k = 0; k < 3; k++)
            error = fmax(error, fabs(bench_get(got[k], j->dt, i) - want[k]) / (1 + fabs(want[k])));
    }
    return error;
}

static void bench_size(struct bandwidth *w, int64_t n, enum dtype dt)
{
    struct bench *b = &w->bench;
    const int64_t size = (int64_t)dtype_bytes(dt);
    const double tolerance = dt == DTYPE_F32 ? 1e-6 : 0x1p-8; /* one rounding */
    struct job j = {.b = b, .n = n, .dt = dt};
    char text[64];
    snprintf(text, sizeof text, "n=%ld", (long)n);
    void **const arrays[] = {&j.gate, &j.up, &j.y, &j.dy, &j.dgate, &j.dup};
    for (int i = 0; i < 6; i++) *arrays[i] = bench_random(b, dt, n, (uint64_t)i);
    const double error = sample_error(&j);
    bandwidth_row(w, "swiglu_fwd", text, dt, run_fwd, &j, 3 * n * size, error, tolerance);
    bandwidth_row(w, "swiglu_bwd", text, dt, run_bwd, &j, 6 * n * size, error, tolerance);
    for (int i = 0; i < 6; i++) mem_free(*arrays[i]);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {65536, 2048 * 768, 2048 * 6 * 1408};
    struct bandwidth w;
    bandwidth_init(&w, argc, argv);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bench_size(&w, sizes[i], DTYPE_F32);
        bench_size(&w, sizes[i], DTYPE_BF16);
    }
    bandwidth_free(&w);
    return 0;
}
