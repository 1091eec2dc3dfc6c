/*
 * rows.c - time of moving rows to their experts and back: sort, gather, combine and its backward.
 * usage: rows [threads]
 */
#include "bandwidth.h"

static const struct {
    int64_t N;
    int D, E, K;
} shapes[] = {{2048, 256, 16, 4}, {2048, 768, 32, 6}, {2048, 2048, 64, 6}, {512, 7168, 256, 8}};

struct job {
    struct bench *b;
    int64_t N, M;
    int D, E, K;
    enum dtype dt;
    void *x, *rows, *drows, *y;
    float *weight, *dweight;
    int32_t *expert, *order, *place;
    int64_t *count;
};

static void run_sort(void *job)
{
    struct job *j = job;
    j->b->be->sort_by_expert(j->b->s, j->order, j->place, j->count, j->expert, j->M, j->E);
}

static void run_gather(void *job)
{
    struct job *j = job;
    j->b->be->gather_rows(j->b->s, j->rows, j->x, j->order, j->K, j->dt, j->M, j->D);
}

static void run_combine_fwd(void *job)
{
    struct job *j = job;
    j->b->be->combine_fwd(j->b->s, j->y, j->rows, j->place, j->weight, NULL, NULL, j->dt, j->N,
                          j->K, j->D);
}

static void run_combine_bwd(void *job)
{
    struct job *j = job;
    j->b->be->combine_bwd(j->b->s, j->drows, j->dweight, j->x, j->rows, j->place, j->weight, j->dt,
                          j->N, j->K, j->D);
}

/* There and back with weights of 1 is K times the row. */
static double round_trip_error(struct job *j)
{
    double error = 0;
    for (int64_t i = 0; i < j->M; i++) j->weight[i] = 1.0f;
    run_sort(j);
    run_gather(j);
    run_combine_fwd(j);
    for (int64_t i = 0; i < j->N * j->D; i += 37) {
        const double want = j->K * bench_get(j->x, j->dt, i);
        error = fmax(error, fabs(bench_get(j->y, j->dt, i) - want) / (1 + fabs(want)));
    }
    return error;
}

static void bench_shape(struct bandwidth *w, struct job j)
{
    struct bench *b = &w->bench;
    const int64_t row = j.D * (int64_t)dtype_bytes(j.dt);
    const double tolerance = j.dt == DTYPE_F32 ? 1e-6 : 0x1p-8; /* one rounding */
    char text[64];
    snprintf(text, sizeof text, "N=%ld D=%d E=%d K=%d", (long)j.N, j.D, j.E, j.K);
    j.b = b;
    j.M = j.N * j.K;
    j.x = bench_random(b, j.dt, j.N * j.D, 1), j.y = bench_random(b, j.dt, j.N * j.D, 2);
    j.rows = bench_random(b, j.dt, j.M * j.D, 3), j.drows = bench_random(b, j.dt, j.M * j.D, 4);
    float **const floats[] = {&j.weight, &j.dweight};
    int32_t **const ints[] = {&j.expert, &j.order, &j.place};
    for (int i = 0; i < 2; i++) *floats[i] = bench_random(b, DTYPE_F32, j.M, 4);
    for (int i = 0; i < 3; i++) *ints[i] = mem_alloc((size_t)j.M * sizeof(int32_t), "bench");
    j.count = mem_alloc((size_t)j.E * sizeof *j.count, "bench");
    for (int64_t i = 0; i < j.M; i++)
        j.expert[i] = (int32_t)(rng_u64(5, (uint64_t)i) % (uint64_t)j.E);
    const double error = round_trip_error(&j);
    bandwidth_row(w, "sort_by_expert", text, DTYPE_I32, run_sort, &j, j.M * 12, error, tolerance);
    bandwidth_row(w, "gather_rows", text, j.dt, run_gather, &j, 2 * j.M * row, error, tolerance);
    bandwidth_row(w, "combine_fwd", text, j.dt, run_combine_fwd, &j, (j.M + j.N) * row, error,
                  tolerance);
    bandwidth_row(w, "combine_bwd", text, j.dt, run_combine_bwd, &j, (2 * j.M + j.N) * row, error,
                  tolerance);
    for (int i = 0; i < 2; i++) mem_free(*floats[i]);
    for (int i = 0; i < 3; i++) mem_free(*ints[i]);
    mem_free(j.x), mem_free(j.y), mem_free(j.rows), mem_free(j.drows), mem_free(j.count);
}

int main(int argc, char **argv)
{
    struct bandwidth w;
    bandwidth_init(&w, argc, argv);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int dt = DTYPE_F32; dt <= DTYPE_BF16; dt++)
            bench_shape(&w, (struct job){.N = shapes[i].N,
                                         .D = shapes[i].D,
                                         .E = shapes[i].E,
                                         .K = shapes[i].K,
                                         .dt = (enum dtype)dt});
    bandwidth_free(&w);
    return 0;
}
