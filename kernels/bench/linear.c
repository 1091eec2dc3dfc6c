/*
 * linear.c - time of the dense products.
 * usage: linear [threads]
 */
#include "bench.h"

/* Layers of the demo, small and wide models for some tokens, and square ones. */
static const struct linear_shape shapes[] = {
    {512, 512, 512, 0, 0},   {1024, 256, 704, 0, 0},  {1024, 768, 768, 0, 0},
    {1024, 256, 1536, 0, 0}, {1024, 768, 2048, 0, 0}, {512, 2048, 4096, 0, 0},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum op { FWD, BWD_X, BWD_W, N_OPS };
static const char *const names[] = {"linear_fwd", "linear_bwd_x", "linear_bwd_w"};

struct job {
    struct bench *b;
    enum op op;
    struct linear_shape shape;
    enum dtype dt;
    void *x, *y, *w;
    float *dw;
};

static void run_linear(void *job)
{
    struct job *j = job;
    const struct backend *be = j->b->be;
    if (j->op == FWD) be->linear_fwd(j->b->s, j->y, j->dt, j->x, j->w, j->dt, &j->shape);
    if (j->op == BWD_X) be->linear_bwd_x(j->b->s, j->x, j->y, j->w, j->dt, &j->shape, false);
    if (j->op == BWD_W) be->linear_bwd_w(j->b->s, j->dw, j->y, j->x, j->dt, &j->shape);
}

/* Relative error of a few elements of y = x w^T. */
static double forward_error(struct job *j)
{
    double diff = 0.0, size = 0.0;
    run_linear(j);
    for (int64_t i = 0; i < 64; i++) {
        const int64_t row = i * 37 % j->shape.N, col = i * 101 % j->shape.out;
        double sum = 0.0;
        for (int64_t k = 0; k < j->shape.in; k++)
            sum += bench_get(j->x, j->dt, row * j->shape.in + k) *
                   bench_get(j->w, j->dt, col * j->shape.in + k);
        const double got = bench_get(j->y, j->dt, row * j->shape.out + col);
        diff += (got - sum) * (got - sum);
        size += sum * sum;
    }
    return sqrt(diff / size);
}

static void bench_shape(struct bench *b, const struct linear_shape *shape, enum dtype dt)
{
    const int64_t N = shape->N, in = shape->in, out = shape->out;
    struct job j = {.b = b, .shape = *shape, .dt = dt};
    char text[64];
    snprintf(text, sizeof text, "N=%ld in=%ld out=%ld", (long)N, (long)in, (long)out);
    j.x = bench_random(b, dt, N * in, 1);
    j.y = bench_random(b, dt, N * out, 2);
    j.w = bench_random(b, dt, in * out, 3);
    j.dw = bench_random(b, DTYPE_F32, in * out, 4);
    const double error = forward_error(&j);
    for (int op = 0; op < N_OPS; op++) {
        j.op = (enum op)op;
        if (error > (dt == DTYPE_F32 ? 1e-5 : 1e-2)) { /* sums of 4096 F32; one BF16 rounding */
            bench_wrong(names[op], text, dt, error);
            continue;
        }
        const double seconds = bench_time(run_linear, &j);
        bench_row(b, names[op], text, dt, seconds, 2.0 * (double)(N * in * out), "");
    }
    mem_free(j.x);
    mem_free(j.y);
    mem_free(j.w);
    mem_free(j.dw);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_init(&b, argc, argv);
    for (int i = 0; i < N_SHAPES; i++) {
        bench_shape(&b, &shapes[i], DTYPE_F32);
        bench_shape(&b, &shapes[i], DTYPE_BF16);
    }
    bench_free(&b);
    return 0;
}
