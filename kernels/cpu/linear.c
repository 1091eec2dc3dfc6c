/*
 * linear.c - dense products of the CPU backend: y = x w^T and both gradients.
 *
 * Contract: kernels/backend.h. Timing: kernels/bench/linear.c. The work is in product.c.
 */
#include "kernels/cpu/product.h"

#include <omp.h>

static void run_product(struct stream *s, struct product p)
{
    p.blocks = cpu_shares(s);
    const int64_t n_blocks = product_blocks(&p);
#pragma omp parallel num_threads(s->threads)
    {
        struct product_scratch scratch = {cpu_scratch(s, omp_get_thread_num()), NULL, 0};
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < n_blocks; i++) {
            const int64_t next = i + s->threads; /* when the threads are equally fast */
            product_block(&p, i, next < n_blocks ? &p : NULL, next, &scratch);
        }
    }
}

static int64_t x_stride(const struct linear_shape *shape)
{
    return shape->x_stride ? shape->x_stride : shape->in;
}

static int64_t y_stride(const struct linear_shape *shape)
{
    return shape->y_stride ? shape->y_stride : shape->out;
}

void cpu_linear_fwd(struct stream *s, void *y, enum dtype y_dt, const void *x, const void *w,
                    enum dtype dt, const struct linear_shape *shape)
{
    const struct product p = {
        .M = shape->N,
        .N = shape->out,
        .K = shape->in,
        .a = {(void *)x, dt, x_stride(shape)},
        .b = {(void *)w, dt, shape->in},
        .c = {y, y_dt, y_stride(shape)},
        .b_transposed = true,
    };
    run_product(s, p);
}

void cpu_linear_bwd_x(struct stream *s, void *dx, const void *dy, const void *w, enum dtype dt,
                      const struct linear_shape *shape, bool accumulate)
{
    const struct product p = {
        .M = shape->N,
        .N = shape->in,
        .K = shape->out,
        .a = {(void *)dy, dt, y_stride(shape)},
        .b = {(void *)w, dt, shape->in},
        .c = {dx, dt, x_stride(shape)},
        .accumulate = accumulate,
    };
    run_product(s, p);
}

void cpu_linear_bwd_w(struct stream *s, float *dw, const void *dy, const void *x, enum dtype dt,
                      const struct linear_shape *shape)
{
    const struct product p = {
        .M = shape->out,
        .N = shape->in,
        .K = shape->N,
        .a = {(void *)dy, dt, y_stride(shape)},
        .b = {(void *)x, dt, x_stride(shape)},
        .c = {dw, DTYPE_F32, shape->in},
        .a_transposed = true,
        .accumulate = true,
    };
    run_product(s, p);
}
