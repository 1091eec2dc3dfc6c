/*
 * rope.c - time of rotating the last part of every query head, in place.
 * usage: rope [threads]
 */
#include "bandwidth.h"

/* Queries of demo, small and wide: d_rope of each head's d_nope + d_rope. */
static const struct rope_shape shapes[] = {
    {2048, 4, 16, 192, 48, 32},
    {2048, 12, 32, 1152, 96, 64},
    {2048, 16, 64, 3072, 192, 128},
};

struct job {
    struct bench *b;
    struct rope_shape shape;
    enum dtype dt;
    void *x;
    float *table; /* one angle for all: [N, d_rope / 2, 2] */
};

static void rotate(struct job *j, bool inverse)
{
    const int N = (int)j->shape.N;
    j->b->be->rope(j->b->s, j->x, j->dt, j->table, 0, N, &j->shape, inverse);
}

static void run(void *job)
{
    rotate(job, false);
}

/* There and back again: how far the last rotated value is from where it was. */
static double error_of(struct job *j)
{
    const struct rope_shape *p = &j->shape;
    const int64_t last = p->N * p->row_stride - 1;
    const double before = bench_get(j->x, j->dt, last);
    rotate(j, false);
    const double moved = fabs(bench_get(j->x, j->dt, last) - before);
    rotate(j, true);
    return moved > 0 ? fabs(bench_get(j->x, j->dt, last) - before) : INFINITY;
}

static void bench_shape(struct bandwidth *w, const struct rope_shape *p, enum dtype dt)
{
    struct job j = {.b = &w->bench, .shape = *p, .dt = dt};
    const int64_t n = p->N * p->heads * p->d_rope;
    char text[64];
    snprintf(text, sizeof text, "N=%ld H=%d %d of %d", (long)p->N, p->heads, p->d_rope,
             p->head_stride);
    j.x = bench_random(j.b, dt, p->N * p->row_stride, 1);
    j.table = bench_random(j.b, DTYPE_F32, p->N * p->d_rope, 2);
    for (int64_t i = 0; i < p->N * p->d_rope; i++) j.table[i] = i % 2 == 0 ? 0.8f : 0.6f;
    const double tolerance = dt == DTYPE_F32 ? 1e-6 : 0.05; /* roundings of values up to 5 */
    bandwidth_row(w, "rope", text, dt, run, &j, 2 * n * (int64_t)dtype_bytes(dt), error_of(&j),
                  tolerance);
    mem_free(j.x), mem_free(j.table);
}

int main(int argc, char **argv)
{
    struct bandwidth w;
    bandwidth_init(&w, argc, argv);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int dt = DTYPE_F32; dt <= DTYPE_BF16; dt++) bench_shape(&w, &shapes[i], dt);
    bandwidth_free(&w);
    return 0;
}
