/*
 * router.c - time of the choice of experts, its backward, and the balance statistics. Bound by the
 * exponentials and the search for the best, not by memory.
 * usage: router [threads]
 */
#include "bandwidth.h"

static const struct router_shape shapes[] = {
    {2048, 16, 4, ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 4, 2, true, 2.5f},
    {2048, 32, 6, ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 4, 2, true, 2.5f},
    {2048, 64, 6, ROUTER_SIGMOID, ROUTER_GROUP_NONE, 1, 1, true, 2.446f},
    {2048, 64, 6, ROUTER_SOFTMAX, ROUTER_GROUP_NONE, 1, 1, false, 1},
    {2048, 256, 8, ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 8, 4, true, 2.5f},
};

struct job {
    struct bench *b;
    struct router_shape shape;
    struct sequence_span span;
    float *logits, *bias, *score, *weight, *dlogits, *coef, *p_sum;
    int32_t *expert, *n_top;
};

static void run_fwd(void *job)
{
    struct job *j = job;
    j->b->be->router_fwd(j->b->s, j->score, j->expert, j->weight, j->logits, j->bias, NULL,
                         &j->shape);
}

static void run_bwd(void *job)
{
    struct job *j = job;
    j->b->be->router_bwd(j->b->s, j->dlogits, j->weight, j->score, j->expert, j->coef, &j->span,
                         &j->shape);
}

static void run_stats(void *job)
{
    struct job *j = job;
    j->b->be->balance_stats(j->b->s, j->p_sum, j->n_top, j->score, &j->span, &j->shape);
}

/* What must hold whatever was chosen: weights of a normalising router add up to its scale, p over
 * all experts to the number of tokens. */
static double sum_error(struct job *j)
{
    const struct router_shape *r = &j->shape;
    double p = 0, error = 0;
    run_fwd(j);
    run_stats(j);
    for (int64_t n = 0; n < r->N && r->normalise; n++) {
        double sum = 0;
        for (int k = 0; k < r->K; k++) sum += (double)j->weight[n * r->K + k];
        error = fmax(error, fabs(sum / (double)r->scale - 1));
    }
    for (int e = 0; e < r->E; e++) p += (double)j->p_sum[e];
    return fmax(error, fabs(p / (double)r->N - 1));
}

static void bench_shape(struct bandwidth *w, const struct router_shape *r)
{
    struct bench *b = &w->bench;
    const int64_t n = r->N * r->E, m = r->N * r->K;
    struct job j = {.b = b, .shape = *r, .span = {0, 1, (int)r->N}};
    char text[96];
    snprintf(text, sizeof text, "N=%ld E=%d K=%d groups=%d %s", (long)r->N, r->E, r->K, r->n_group,
             r->score == ROUTER_SIGMOID ? "sigmoid" : "softmax");
    float **const arrays[] = {&j.logits, &j.score, &j.dlogits, &j.bias, &j.coef, &j.p_sum};
    for (int i = 0; i < 6; i++)
        *arrays[i] = bench_random(b, DTYPE_F32, i < 3 ? n : r->E, (uint64_t)i);
    j.weight = bench_random(b, DTYPE_F32, m, 9);
    j.expert = mem_alloc((size_t)m * sizeof *j.expert, "bench");
    j.n_top = mem_alloc((size_t)r->E * sizeof *j.n_top, "bench");
    for (int e = 0; e < r->E; e++) j.bias[e] *= 0.01f;
    const double error = sum_error(&j), tolerance = 1e-5; /* F32 sums over 2048 tokens */
    bandwidth_row(w, "router_fwd", text, DTYPE_F32, run_fwd, &j, 4 * (2 * n + 2 * m), error,
                  tolerance);
    bandwidth_row(w, "router_bwd", text, DTYPE_F32, run_bwd, &j, 4 * (2 * n + 2 * m), error,
                  tolerance);
    bandwidth_row(w, "balance_stats", text, DTYPE_F32, run_stats, &j, 4 * n, error, tolerance);
    for (int i = 0; i < 6; i++) mem_free(*arrays[i]);
    mem_free(j.weight), mem_free(j.expert), mem_free(j.n_top);
}

int main(int argc, char **argv)
{
    struct bandwidth w;
    bandwidth_init(&w, argc, argv);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) bench_shape(&w, &shapes[i]);
    bandwidth_free(&w);
    return 0;
}
