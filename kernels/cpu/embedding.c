/*
 * embedding.c - rows of the token table that lie on this rank, and their gradient.
 *
 * Contract: kernels/backend.h.
 */
#include "kernels/cpu/block.h"

/* The row of the local table for this id, or -1. */
static int64_t local_row(int32_t id, int row0, int n_rows)
{
    return id >= row0 && id - row0 < n_rows ? id - row0 : -1;
}

void cpu_embedding_fwd(struct stream *s, void *x, const void *table, const int32_t *id,
                       enum dtype dt, int64_t N, int D, int row0, int n_rows)
{
    const int threads = block_threads(s, N * D);
    const size_t row_bytes = (size_t)D * dtype_bytes(dt);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < N; n++) {
        const int64_t row = local_row(id[n], row0, n_rows);
        if (row >= 0)
            memcpy(elem(x, dt, n * D), elem(table, dt, row * D), row_bytes);
        else
            memset(elem(x, dt, n * D), 0, row_bytes);
    }
}

/* Two tokens may have the same id, so the columns, not the tokens, are split over the threads:
 * every element of the table is summed in token order by one thread. */
void cpu_embedding_bwd(struct stream *s, float *dtable, const void *dx, const int32_t *id,
                       enum dtype dt, int64_t N, int D, int row0, int n_rows)
{
    const int threads = block_threads(s, N * D);
    const int share = (D + threads - 1) / threads, cols = share < BLOCK ? share : BLOCK;

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int d = 0; d < D; d += cols) {
        const int size = D - d < cols ? D - d : cols;
        for (int64_t n = 0; n < N; n++) {
            const int64_t row = local_row(id[n], row0, n_rows);
            if (row < 0) continue;
            float buf[BLOCK];
            const float *dx_n = cpu_row(buf, dx, dt, n * D + d, size);
            float *sum = dtable + row * D + d;
#pragma omp simd
            for (int j = 0; j < size; j++) sum[j] += dx_n[j];
        }
    }
}
