/*
 * grouped.c - the experts' products of the CPU backend: one product per group of rows, all groups
 * in one parallel loop over blocks, so that uneven groups keep every thread busy.
 *
 * Contract: kernels/backend.h. Timing: kernels/bench/grouped.c. The work is in product.c.
 */
#include "kernels/cpu/product.h"

#include <omp.h>

enum kind { FWD, BWD_X, BWD_W };

/* What is common to the three products of a grouped layer. */
struct grouped {
    enum kind kind;
    const struct grouped_shape *shape;
    void *x, *y, *w; /* or their gradients */
    enum dtype dt;
    bool accumulate;
};

static struct product group_product(const struct grouped *job, int g)
{
    const int in = job->shape->in, out = job->shape->out;
    const int64_t first = job->shape->offset[g], rows = job->shape->offset[g + 1] - first;
    const enum dtype w_dt = job->kind == BWD_W ? DTYPE_F32 : job->dt;
    const struct matrix x = {elem(job->x, job->dt, first * in), job->dt, in};
    const struct matrix y = {elem(job->y, job->dt, first * out), job->dt, out};
    const struct matrix w = {elem(job->w, w_dt, (int64_t)g * out * in), w_dt, in};
    switch (job->kind) {
    case FWD:
        return (struct product){
            .M = rows, .N = out, .K = in, .a = x, .b = w, .c = y, .b_transposed = true};
    case BWD_X:
        return (struct product){
            .M = rows, .N = in, .K = out, .a = y, .b = w, .c = x, .accumulate = job->accumulate};
    case BWD_W: break;
    }
    return (struct product){.M = out,
                            .N = in,
                            .K = rows,
                            .a = y,
                            .b = x,
                            .c = w,
                            .a_transposed = true,
                            .accumulate = true};
}

/* A group with its share of the blocks. */
static struct product shared_product(const struct stream *s, const struct grouped *job, int g)
{
    const int64_t *offset = job->shape->offset;
    const int64_t rows = offset[g + 1] - offset[g];
    struct product p = group_product(job, g);
    if (rows > 0) p.blocks = cpu_shares(s) * rows / offset[job->shape->n_groups];
    return p;
}

/* A place in the blocks of all groups, laid end to end. It moves on only. */
struct place {
    int g;
    int64_t begin, end; /* the blocks of group g */
    struct product p;
};

static void move_to(struct place *at, const struct stream *s, const struct grouped *job, int64_t i)
{
    while (i >= at->end) {
        at->p = shared_product(s, job, ++at->g);
        at->begin = at->end;
        at->end += product_blocks(&at->p);
    }
}

/* Threads take blocks in turn. */
static void run_grouped(struct stream *s, const struct grouped *job)
{
    const int n_groups = job->shape->n_groups;
    int64_t n_blocks = 0;
    for (int g = 0; g < n_groups; g++) {
        const struct product p = shared_product(s, job, g);
        n_blocks += product_blocks(&p);
    }
#pragma omp parallel num_threads(s->threads)
    {
        struct product_scratch scratch = {cpu_scratch(s, omp_get_thread_num()), NULL, 0};
        struct place now = {.g = -1}, then = {.g = -1};
#pragma omp for schedule(monotonic : dynamic)
        for (int64_t i = 0; i < n_blocks; i++) {
            const int64_t next = i + s->threads; /* when the threads are equally fast */
            move_to(&now, s, job, i);
            if (next < n_blocks) move_to(&then, s, job, next);
            product_block(&now.p, i - now.begin, next < n_blocks ? &then.p : NULL,
                          next - then.begin, &scratch);
        }
    }
}

void cpu_grouped_fwd(struct stream *s, void *y, const void *x, const void *w, enum dtype dt,
                     const struct grouped_shape *shape)
{
    run_grouped(s, &(struct grouped){FWD, shape, (void *)x, y, (void *)w, dt, false});
}

void cpu_grouped_bwd_x(struct stream *s, void *dx, const void *dy, const void *w, enum dtype dt,
                       const struct grouped_shape *shape, bool accumulate)
{
    run_grouped(s, &(struct grouped){BWD_X, shape, dx, (void *)dy, (void *)w, dt, accumulate});
}

void cpu_grouped_bwd_w(struct stream *s, float *dw, const void *dy, const void *x, enum dtype dt,
                       const struct grouped_shape *shape)
{
    run_grouped(s, &(struct grouped){BWD_W, shape, (void *)x, (void *)dy, dw, dt, true});
}
