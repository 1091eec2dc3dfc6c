/*
 * rows.c - rows of tokens into the order of their experts and back.
 *
 * Contract: kernels/backend.h. Memory bound. The weights are applied on the way back, in F32, and
 * the K rows of a token are summed in F32, so the result does not depend on where they were.
 */
#include "kernels/cpu/block.h"

#include "base/err.h"

/* A wrong id would count beyond the array. */
static void check_ids(const int32_t *expert, int64_t M, int E)
{
    int64_t n_bad = 0, first = 0;
#pragma omp simd reduction(+ : n_bad)
    for (int64_t i = 0; i < M; i++) n_bad += (uint32_t)expert[i] >= (uint32_t)E;
    if (n_bad == 0) return;
    while ((uint32_t)expert[first] < (uint32_t)E) first++;
    DIE(CODE_INTERNAL, "row %lld: expert id %d, expected 0 .. %d", (long long)first, expert[first],
        E - 1);
}

/* One thread: M is a few ten thousand, a scatter that needs no second copy of the counts. */
void cpu_sort_by_expert(struct stream *s, int32_t *order, int32_t *place, int64_t *count,
                        const int32_t *expert, int64_t M, int E)
{
    int64_t begin = 0;
    (void)s;
    check_ids(expert, M, E);
    memset(count, 0, (size_t)E * sizeof *count);
    for (int64_t i = 0; i < M; i++) count[expert[i]]++;
    for (int e = 0; e < E; e++) { /* count becomes the next free place of each expert */
        const int64_t n = count[e];
        count[e] = begin;
        begin += n;
    }
    for (int64_t i = 0; i < M; i++) {
        const int64_t j = count[expert[i]]++;
        order[j] = (int32_t)i;
        place[i] = (int32_t)j;
    }
    /* now each is the end of its expert's rows: back to counts */
    for (int e = E - 1; e > 0; e--) count[e] -= count[e - 1];
}

void cpu_gather_rows(struct stream *s, void *dst, const void *src, const int32_t *index,
                     int divisor, enum dtype dt, int64_t M, int D)
{
    const int threads = block_threads(s, M * D);
    const size_t row_bytes = (size_t)D * dtype_bytes(dt);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t j = 0; j < M; j++) {
        const int64_t row = index[j] / divisor;
        memcpy(elem(dst, dt, j * D), elem(src, dt, row * D), row_bytes);
    }
}

static void prefetch(const void *rows, enum dtype dt, int64_t i, int size)
{
    const char *row = elem(rows, dt, i);
    for (int b = 0; b < size * (int)dtype_bytes(dt); b += 64) __builtin_prefetch(row + b);
}

static void add_row(float *sum, const void *rows, enum dtype dt, int64_t i, float weight, int size)
{
    float buf[BLOCK];
    const float *row = cpu_row(buf, rows, dt, i, size);
#pragma omp simd
    for (int j = 0; j < size; j++) sum[j] += weight * row[j];
}

static void add_two_rows(float *sum, const void *rows, enum dtype dt, const int64_t *i,
                         const float *weight, int size)
{
    float buf0[BLOCK], buf1[BLOCK];
    const float *row0 = cpu_row(buf0, rows, dt, i[0], size);
    const float *row1 = cpu_row(buf1, rows, dt, i[1], size);
    const float weight0 = weight[0], weight1 = weight[1];
#pragma omp simd
    for (int j = 0; j < size; j++) sum[j] = sum[j] + weight0 * row0[j] + weight1 * row1[j];
}

/* sum += the rows place[0 .. K - 1] of one token, columns d .. d + size - 1. In pairs, with the
 * next pair on its way (place has n_left entries in all): twice as fast as row by row, because
 * the rows are scattered (2048 tokens of 6 rows of 768 F32: 7.7 instead of 16 ms). */
static void add_token_rows(float *sum, const void *rows, enum dtype dt, const int32_t *place,
                           const float *weight, int64_t n_left, int K, int D, int d, int size)
{
    int k = 0;
    for (; k + 1 < K; k += 2) {
        const int64_t i[2] = {place[k] * (int64_t)D + d, place[k + 1] * (int64_t)D + d};
        const float w[2] = {weight ? weight[k] : 1.0f, weight ? weight[k + 1] : 1.0f};
        for (int next = k + 2; next < k + 4 && next < n_left; next++)
            prefetch(rows, dt, place[next] * (int64_t)D + d, size);
        add_two_rows(sum, rows, dt, i, w, size);
    }
    if (k < K) add_row(sum, rows, dt, place[k] * (int64_t)D + d, weight ? weight[k] : 1.0f, size);
}

void cpu_combine_fwd(struct stream *s, void *y, const void *rows, const int32_t *place,
                     const float *weight, const void *add0, const void *add1, enum dtype dt,
                     int64_t N, int K, int D)
{
    const int threads = block_threads(s, N * K * D);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < N; n++) {
        const float *weight_n = weight ? weight + n * K : NULL;
        for (int d = 0; d < D; d += BLOCK) {
            float sum[BLOCK];
            const int size = block_size(d, D);
            memset(sum, 0, (size_t)size * sizeof *sum);
            add_token_rows(sum, rows, dt, place + n * K, weight_n, (N - n) * K, K, D, d, size);
            if (add0) add_row(sum, add0, dt, n * D + d, 1.0f, size);
            if (add1) add_row(sum, add1, dt, n * D + d, 1.0f, size);
            cpu_store(y, dt, n * D + d, sum, size);
        }
    }
}

/* drow = weight * dy for one row of an expert; returns dot(dy, row). */
static float row_bwd(void *drows, const void *rows, int64_t row_first, const void *dy,
                     int64_t dy_first, float weight, enum dtype dt, int D)
{
    float dy_buf[BLOCK], row_buf[BLOCK], drow_buf[BLOCK];
    double dot = 0;
    for (int d = 0; d < D; d += BLOCK) {
        const int size = block_size(d, D);
        const float *dy_d = cpu_row(dy_buf, dy, dt, dy_first + d, size);
        const float *row_d = cpu_row(row_buf, rows, dt, row_first + d, size);
        float *drow_d = cpu_row_begin(drow_buf, drows, dt, row_first + d);
        float part = 0;
#pragma omp simd reduction(+ : part)
        for (int j = 0; j < size; j++) {
            part += dy_d[j] * row_d[j];
            drow_d[j] = weight * dy_d[j];
        }
        cpu_row_end(drows, dt, row_first + d, drow_d, size);
        dot += (double)part;
    }
    return (float)dot;
}

void cpu_combine_bwd(struct stream *s, void *drows, float *dweight, const void *dy,
                     const void *rows, const int32_t *place, const float *weight, enum dtype dt,
                     int64_t N, int K, int D)
{
    const int threads = block_threads(s, N * K * D);

#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = n * K; i < (n + 1) * K; i++)
            dweight[i] = row_bwd(drows, rows, (int64_t)place[i] * D, dy, n * D, weight[i], dt, D);
}
