/*
 * adamw.c - time of an optimizer step, and of the gradient's sum of squares before it.
 * usage: adamw [threads]
 */
#include "bandwidth.h"

struct job {
    struct bench *b;
    int64_t n;
    enum dtype m_dt;
    float *p, *g;
    void *m, *v;
    double *sum;
    struct adamw_args args;
    int32_t bad;
};

static void run_adamw(void *job)
{
    struct job *j = job;
    j->b->be->adamw(j->b->s, j->p, j->m, j->v, j->m_dt, j->g, j->n, &j->args, &j->bad);
}

static void run_squares(void *job)
{
    struct job *j = job;
    j->b->be->sum_squares(j->b->s, j->sum, j->g, j->n);
}

/* A first step, from zero moments, goes by lr in the direction of the gradient. */
static double first_step_error(struct job *j)
{
    double error = 0;
    float *before = mem_alloc((size_t)j->n * sizeof *before, "bench");
    memcpy(before, j->p, (size_t)j->n * sizeof *before);
    j->b->be->zero(j->b->s, j->m, (size_t)j->n * dtype_bytes(j->m_dt));
    j->b->be->zero(j->b->s, j->v, (size_t)j->n * dtype_bytes(j->m_dt));
    run_adamw(j);
    for (int64_t i = 0; i < j->n; i++) {
        if (fabsf(j->g[i]) < 1e-3f) continue; /* eps counts */
        const double want = (double)before[i] - copysign((double)j->args.lr, (double)j->g[i]);
        error = fmax(error, fabs((double)j->p[i] - want));
    }
    mem_free(before);
    return error;
}

static void bench_size(struct bandwidth *w, int64_t n, enum dtype m_dt)
{
    struct bench *b = &w->bench;
    struct job j = {.b = b, .n = n, .m_dt = m_dt};
    char text[64];
    snprintf(text, sizeof text, "n=%ld", (long)n);
    j.args = (struct adamw_args){.lr = 1e-3f,
                                 .beta1 = 0.9f,
                                 .beta2 = 0.95f,
                                 .eps = 1e-8f,
                                 .correction1 = 0.1f,
                                 .correction2 = 0.05f,
                                 .grad_scale = 1.0f};
    j.p = bench_random(b, DTYPE_F32, n, 1), j.g = bench_random(b, DTYPE_F32, n, 2);
    j.m = bench_random(b, m_dt, n, 3), j.v = bench_random(b, m_dt, n, 4);
    j.sum = mem_alloc(sizeof *j.sum, "bench");
    const double error = first_step_error(&j), tolerance = 1e-6; /* F32 weights up to 5 */
    const int64_t bytes = n * (12 + 4 * (int64_t)dtype_bytes(m_dt));
    bandwidth_row(w, "adamw", text, m_dt, run_adamw, &j, bytes, error, tolerance);
    bandwidth_row(w, "sum_squares", text, DTYPE_F32, run_squares, &j, 4 * n, error, tolerance);
    mem_free(j.p), mem_free(j.g), mem_free(j.m), mem_free(j.v), mem_free(j.sum);
}

int main(int argc, char **argv)
{
    struct bandwidth w;
    bandwidth_init(&w, argc, argv);
    for (int dt = DTYPE_F32; dt <= DTYPE_BF16; dt++) {
        bench_size(&w, 65536, (enum dtype)dt);
        bench_size(&w, 16 << 20, (enum dtype)dt);
    }
    bandwidth_free(&w);
    return 0;
}
