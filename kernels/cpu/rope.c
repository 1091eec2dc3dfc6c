/*
 * rope.c - rotary position embedding, in place, on adjacent pairs, in F32 with one rounding.
 *
 * Contract: kernels/backend.h. The inverse rotation is the backward.
 */
#include "kernels/cpu/block.h"

#include "base/err.h"

/* n elements (n / 2 pairs); y may be x. */
static void rotate(float *y, const float *x, const float *table, int n, float sign)
{
#pragma omp simd
    for (int i = 0; i < n; i += 2) {
        const float re = x[i], im = x[i + 1], c = table[i], sn = sign * table[i + 1];
        y[i] = re * c - im * sn;
        y[i + 1] = re * sn + im * c;
    }
}

void cpu_rope(struct stream *s, void *x, enum dtype dt, const float *table, int64_t first, int T,
              const struct rope_shape *shape, bool inverse)
{
    const int d_rope = shape->d_rope;
    const int threads = block_threads(s, shape->N * shape->heads * d_rope);
    const float sign = inverse ? -1.0f : 1.0f;
    CHECK(d_rope % 2 == 0, "d_rope %d is odd", d_rope);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->N; n++) {
        const float *phase = table + (first + n) % T * d_rope;
        for (int h = 0; h < shape->heads; h++) {
            const int64_t head = n * shape->row_stride + h * (int64_t)shape->head_stride;
            cpu_fetch(x, dt, head + shape->row_stride + shape->offset, d_rope, true);
            for (int d = 0; d < d_rope; d += BLOCK) {
                float in[BLOCK], out[BLOCK];
                const int64_t i = head + shape->offset + d;
                const int size = block_size(d, d_rope);
                const float *x_i = cpu_row(in, x, dt, i, size);
                float *y_i = cpu_row_begin(out, x, dt, i);
                rotate(y_i, x_i, phase + d, size, sign);
                cpu_row_end(x, dt, i, y_i, size);
            }
        }
    }
}
