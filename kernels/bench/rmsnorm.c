/*
 * rmsnorm.c - time of the norm, forward and backward.
 * usage: rmsnorm [threads]
 */
#include "bandwidth.h"

/* Block norms of the demo, small, wide and 671B widths, and a latent. */
static const struct norm_shape shapes[] = {
    {2048, 256, 0, 0, 1e-6f},  {2048, 512, 0, 0, 1e-6f},  {2048, 768, 0, 0, 1e-6f},
    {2048, 2048, 0, 0, 1e-6f}, {1024, 7168, 0, 0, 1e-6f},
};

struct job {
    struct bench *b;
    struct norm_shape shape;
    enum dtype dt;
    void *x, *y, *dy, *dx;
    float *g, *rstd, *dg;
};

static void run_fwd(void *job)
{
    struct job *j = job;
    j->b->be->rmsnorm_fwd(j->b->s, j->y, j->rstd, j->x, j->g, j->dt, &j->shape);
}

static void run_bwd(void *job)
{
    struct job *j = job;
    j->b->be->rmsnorm_bwd(j->b->s, j->dx, j->dg, j->dy, j->x, j->rstd, j->g, j->dt, &j->shape,
                          false);
}

/* Of the last row, forward and backward, relative to values of about 1. */
static double last_row_error(struct job *j)
{
    const int D = j->shape.D;
    const int64_t at = (j->shape.N - 1) * D;
    double squares = 0, dot = 0, error = 0;
    run_fwd(j);
    run_bwd(j);
    for (int d = 0; d < D; d++) squares += pow(bench_get(j->x, j->dt, at + d), 2);
    const double r = 1 / sqrt(squares / D + (double)j->shape.eps);
    for (int d = 0; d < D; d++)
        dot +=
            bench_get(j->dy, j->dt, at + d) * (double)j->g[d] * bench_get(j->x, j->dt, at + d) * r;
    for (int d = 0; d < D; d++) {
        const double h = bench_get(j->x, j->dt, at + d) * r, g = (double)j->g[d];
        const double dx = r * (bench_get(j->dy, j->dt, at + d) * g - h * dot / D);
        error = fmax(error, fabs(bench_get(j->y, j->dt, at + d) - h * g));
        error = fmax(error, fabs(bench_get(j->dx, j->dt, at + d) - dx));
    }
    return error;
}

static void bench_shape(struct bandwidth *w, const struct norm_shape *shape, enum dtype dt)
{
    struct bench *b = &w->bench;
    const int64_t n = shape->N * shape->D, size = (int64_t)dtype_bytes(dt);
    const double tolerance = dt == DTYPE_F32 ? 1e-5 : 0.1; /* one rounding of values up to 16 */
    struct job j = {.b = b, .shape = *shape, .dt = dt};
    char text[64];
    snprintf(text, sizeof text, "N=%ld D=%d", (long)shape->N, shape->D);
    j.x = bench_random(b, dt, n, 1), j.y = bench_random(b, dt, n, 2);
    j.dy = bench_random(b, dt, n, 3), j.dx = bench_random(b, dt, n, 4);
    j.g = bench_random(b, DTYPE_F32, shape->D, 5), j.dg = bench_random(b, DTYPE_F32, shape->D, 6);
    j.rstd = bench_random(b, DTYPE_F32, shape->N, 7);
    const double error = last_row_error(&j);
    bandwidth_row(w, "rmsnorm_fwd", text, dt, run_fwd, &j, 2 * n * size, error, tolerance);
    bandwidth_row(w, "rmsnorm_bwd", text, dt, run_bwd, &j, 3 * n * size, error, tolerance);
    mem_free(j.x), mem_free(j.y), mem_free(j.dy), mem_free(j.dx);
    mem_free(j.g), mem_free(j.dg), mem_free(j.rstd);
}

int main(int argc, char **argv)
{
    struct bandwidth w;
    bandwidth_init(&w, argc, argv);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        bench_shape(&w, &shapes[i], DTYPE_F32);
        bench_shape(&w, &shapes[i], DTYPE_BF16);
    }
    bandwidth_free(&w);
    return 0;
}
