/*
 * grouped.c - time of the experts' products for even, uneven and ever new row counts, and
 * with many small experts against few large ones (the same FLOP and width of the model).
 * usage: grouped [threads]
 */
#include "bench.h"

enum { MAX_GROUPS = 64 };

/* Rows in all; how they lie over the groups. */
enum spread { EVEN, SKEWED, ONE_GROUP, NEW_EVERY_CALL, N_SPREADS };
static const char *const spreads[] = {"even", "skewed", "one group", "new counts every call"};

static const struct {
    int n_groups, in, out;
    int64_t rows;
} shapes[] = {
    {16, 256, 128, 4096}, /* demo */
    {32, 768, 384, 3072}, /* small, 512 tokens x 6 */
    {8, 512, 1024, 2048},
    {56, 512, 146, 14364}, /* the same FLOP in 7 times as many experts, 7 times as many rows */
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum op { FWD, BWD_X, BWD_W, N_OPS };
static const char *const names[] = {"grouped_fwd", "grouped_bwd_x", "grouped_bwd_w"};

struct job {
    struct bench *b;
    enum op op;
    enum spread spread;
    enum dtype dt;
    struct grouped_shape shape;
    int64_t rows, offset[MAX_GROUPS + 1];
    uint64_t n_calls;
    void *x, *y, *w;
    float *dw;
};

static void set_offsets(struct job *j)
{
    const int n = j->shape.n_groups;
    for (int g = 1; g < n; g++) {
        const int64_t even = j->rows * g / n;
        j->offset[g] = even;
        if (j->spread == SKEWED) j->offset[g] = even + (j->rows - even) * g / n / 2;
        if (j->spread == ONE_GROUP) j->offset[g] = j->rows;
        if (j->spread == NEW_EVERY_CALL) {
            const int64_t room = j->rows / n;
            j->offset[g] = even + (int64_t)(rng_u64(j->n_calls, (uint64_t)g) % (uint64_t)room);
        }
    }
    j->offset[0] = 0;
    j->offset[n] = j->rows;
}

static void run_grouped(void *job)
{
    struct job *j = job;
    const struct backend *be = j->b->be;
    j->n_calls++;
    if (j->spread == NEW_EVERY_CALL) set_offsets(j);
    if (j->op == FWD) be->grouped_fwd(j->b->s, j->y, j->x, j->w, j->dt, &j->shape);
    if (j->op == BWD_X) be->grouped_bwd_x(j->b->s, j->x, j->y, j->w, j->dt, &j->shape, false);
    if (j->op == BWD_W) be->grouped_bwd_w(j->b->s, j->dw, j->y, j->x, j->dt, &j->shape);
}

/* Relative error of a few elements of y, each with the matrix of its group. */
static double forward_error(struct job *j)
{
    const int64_t in = j->shape.in, out = j->shape.out;
    double diff = 0.0, size = 0.0;
    run_grouped(j);
    for (int64_t i = 0; i < 64; i++) {
        const int64_t row = i * 131 % j->rows, col = i * 101 % out;
        int64_t g = 0;
        while (j->offset[g + 1] <= row) g++;
        double sum = 0.0;
        for (int64_t k = 0; k < in; k++)
            sum += bench_get(j->x, j->dt, row * in + k) *
                   bench_get(j->w, j->dt, (g * out + col) * in + k);
        const double error = bench_get(j->y, j->dt, row * out + col) - sum;
        diff += error * error;
        size += sum * sum;
    }
    return sqrt(diff / size);
}

static void bench_shape(struct bench *b, int i, enum dtype dt)
{
    const int64_t in = shapes[i].in, out = shapes[i].out, rows = shapes[i].rows;
    const int64_t n_w = shapes[i].n_groups * in * out;
    struct job j = {.b = b, .dt = dt, .rows = rows};
    char text[80];
    snprintf(text, sizeof text, "groups=%d in=%ld out=%ld rows=%ld", shapes[i].n_groups, (long)in,
             (long)out, (long)rows);
    j.shape = (struct grouped_shape){shapes[i].n_groups, j.offset, (int)in, (int)out};
    j.x = bench_random(b, dt, rows * in, 1);
    j.y = bench_random(b, dt, rows * out, 2);
    j.w = bench_random(b, dt, n_w, 3);
    j.dw = bench_random(b, DTYPE_F32, n_w, 4);
    for (int spread = 0; spread < N_SPREADS; spread++) {
        j.spread = (enum spread)spread;
        set_offsets(&j);
        j.op = FWD;
        const double error = forward_error(&j);
        for (int op = 0; op < N_OPS; op++) {
            j.op = (enum op)op;
            if (error > (dt == DTYPE_F32 ? 1e-5 : 1e-2)) /* sums of F32; one BF16 rounding */
                bench_wrong(names[op], text, dt, error);
            else
                bench_row(b, names[op], text, dt, bench_time(run_grouped, &j),
                          2.0 * (double)(rows * in * out), spreads[spread]);
        }
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
        bench_shape(&b, i, DTYPE_F32);
        bench_shape(&b, i, DTYPE_BF16);
    }
    bench_free(&b);
    return 0;
}
