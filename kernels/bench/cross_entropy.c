/*
 * cross_entropy.c - time of the three steps of the loss on one chunk of tokens.
 * usage: cross_entropy [threads]
 */
#include "bandwidth.h"

struct job {
    struct bench *b;
    int64_t n;
    int V;
    enum dtype dt;
    float *logits, *max, *sum, *target, *loss;
    void *dlogits;
    int32_t *label;
};

static void run_max(void *job)
{
    struct job *j = job;
    j->b->be->cross_entropy_max(j->b->s, j->max, j->logits, j->n, j->V);
}

static void run_sum(void *job)
{
    struct job *j = job;
    j->b->be->cross_entropy_sum(j->b->s, j->sum, j->target, j->logits, j->max, j->label, j->n, j->V,
                                0);
}

static void run_loss(void *job)
{
    struct job *j = job;
    j->b->be->cross_entropy_loss(j->b->s, j->loss, j->dlogits, j->dt, j->logits, j->max, j->sum,
                                 j->target, j->label, 1.0f, j->n, j->V, 0);
}

/* Of the last row's loss and gradient. */
static double last_row_error(struct job *j)
{
    const int64_t at = (j->n - 1) * j->V;
    double sum = 0, error;
    run_max(j);
    run_sum(j);
    run_loss(j);
    for (int v = 0; v < j->V; v++) sum += exp((double)j->logits[at + v]);
    error = fabs((double)j->loss[j->n - 1] - log(sum) + (double)j->logits[at]); /* label 0 */
    for (int v = 0; v < j->V; v++) {
        const double want = exp((double)j->logits[at + v]) / sum - (v == 0);
        error = fmax(error, fabs(bench_get(j->dlogits, j->dt, at + v) - want));
    }
    return error;
}

static void bench_shape(struct bandwidth *w, int64_t n, int V, enum dtype dt)
{
    struct bench *b = &w->bench;
    const double tolerance = dt == DTYPE_F32 ? 1e-5 : 0x1p-8; /* one rounding of values up to 1 */
    struct job j = {.b = b, .n = n, .V = V, .dt = dt};
    char text[64];
    snprintf(text, sizeof text, "n=%ld V=%d", (long)n, V);
    float **const rows[] = {&j.max, &j.sum, &j.target, &j.loss};
    for (int i = 0; i < 4; i++) *rows[i] = mem_alloc((size_t)n * sizeof(float), "bench");
    j.logits = bench_random(b, DTYPE_F32, n * V, 1);
    j.dlogits = bench_random(b, dt, n * V, 2);
    j.label = mem_alloc((size_t)n * sizeof *j.label, "bench");
    const double error = last_row_error(&j);
    bandwidth_row(w, "cross_entropy_max", text, DTYPE_F32, run_max, &j, 4 * n * V, error,
                  tolerance);
    bandwidth_row(w, "cross_entropy_sum", text, DTYPE_F32, run_sum, &j, 4 * n * V, error,
                  tolerance);
    bandwidth_row(w, "cross_entropy_loss", text, dt, run_loss, &j,
                  (4 + (int64_t)dtype_bytes(dt)) * n * V, error, tolerance);
    for (int i = 0; i < 4; i++) mem_free(*rows[i]);
    mem_free(j.logits), mem_free(j.dlogits), mem_free(j.label);
}

int main(int argc, char **argv)
{
    struct bandwidth w;
    bandwidth_init(&w, argc, argv);
    for (int dt = DTYPE_F32; dt <= DTYPE_BF16; dt++) {
        bench_shape(&w, 1024, 512, (enum dtype)dt);
        bench_shape(&w, 256, 16384, (enum dtype)dt);
        bench_shape(&w, 64, 129280, (enum dtype)dt);
    }
    bandwidth_free(&w);
    return 0;
}
