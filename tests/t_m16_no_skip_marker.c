/* An id for "no expert" does not exist: one ends the run with its row. Where -1 does mean "none",
 * as a token to embed or as a label, single rows and whole blocks of it are zero and change no bit
 * of the others. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"
#include "kernels.h"

enum { N = 96, D = 40, V = 24, E = 8, BLOCK_ROWS = 32 };

static struct stream *stream;

/* A whole block from row 32 on, and single rows in the others. */
static bool is_none(int64_t row)
{
    return row / BLOCK_ROWS == 1 || row == 0 || row == 17 || row == N - 1;
}

static void sort_with(const char *id)
{
    int32_t expert[N], order[N], place[N];
    int64_t count[E];
    for (int32_t i = 0; i < N; i++) expert[i] = i % E;
    expert[5] = atoi(id);
    for (int i = BLOCK_ROWS; i < 2 * BLOCK_ROWS; i++) expert[i] = atoi(id);
    backend_cpu.sort_by_expert(stream, order, place, count, expert, N, E);
}

static void check_experts(void)
{
    fixture_expect(sort_with, "-1", CODE_INTERNAL, "row 5: expert id -1, expected 0 .. 7\0");
    fixture_expect(sort_with, "8", CODE_INTERNAL, "row 5: expert id 8, expected 0 .. 7\0");
    fixture_expect(sort_with, "7", CODE_DONE, "");
}

/* The rows of x [N, cols] that are not none, one after the other. */
static int64_t keep_rows(void *kept, const void *x, size_t row_bytes)
{
    int64_t n = 0;
    for (int64_t i = 0; i < N; i++)
        if (!is_none(i))
            memcpy((char *)kept + n++ * (int64_t)row_bytes,
                   (const char *)x + i * (int64_t)row_bytes, row_bytes);
    return n;
}

/* Rows of all [N, cols] are those of kept in turn, or zero. */
static void check_rows(const char *what, const void *all, const void *kept, size_t row_bytes)
{
    static const char zero[V * D * sizeof(float)];
    int64_t n = 0;
    for (int64_t i = 0; i < N; i++) {
        const char *got = (const char *)all + i * (int64_t)row_bytes;
        const void *want = is_none(i) ? zero : (const char *)kept + n++ * (int64_t)row_bytes;
        EXPECT(memcmp(got, want, row_bytes) == 0, "%s: row %lld", what, (long long)i);
    }
}

static void check_embedding(enum dtype dt)
{
    const size_t row_bytes = D * dtype_bytes(dt);
    int32_t *id = new_ints(N, "id", 0, V - 1), kept_id[N];
    void *table = new_values(dt, V * D, "table", 1), *dx = new_values(dt, N * D, "dx", 1);
    void *x = new_bytes(N * row_bytes), *kept_x = new_bytes(N * row_bytes);
    void *kept_dx = new_bytes(N * row_bytes);
    float grad[V * D] = {0}, kept_grad[V * D] = {0};
    for (int i = 0; i < N; i++) id[i] = is_none(i) ? -1 : id[i];
    const int64_t n = keep_rows(kept_id, id, sizeof *id);
    keep_rows(kept_dx, dx, row_bytes);
    backend_cpu.embedding_fwd(stream, x, table, id, dt, N, D, 0, V);
    backend_cpu.embedding_fwd(stream, kept_x, table, kept_id, dt, n, D, 0, V);
    check_rows("embedding", x, kept_x, row_bytes);
    backend_cpu.embedding_bwd(stream, grad, dx, id, dt, N, D, 0, V);
    backend_cpu.embedding_bwd(stream, kept_grad, kept_dx, kept_id, dt, n, D, 0, V);
    EXPECT(memcmp(grad, kept_grad, sizeof grad) == 0, "%s: embedding gradient", dtype_name(dt));
    free(id), free(table), free(dx), free(x), free(kept_x), free(kept_dx);
}

struct loss {
    float loss[N], dlogits[N * V];
};

static void cross_entropy(struct loss *out, const float *logits, const int32_t *label, int64_t n)
{
    float max[N], sum[N], target[N];
    backend_cpu.cross_entropy_max(stream, max, logits, n, V);
    backend_cpu.cross_entropy_sum(stream, sum, target, logits, max, label, n, V, 0);
    backend_cpu.cross_entropy_loss(stream, out->loss, out->dlogits, DTYPE_F32, logits, max, sum,
                                   target, label, 0.5f, n, V, 0);
}

static void check_labels(void)
{
    static struct loss all, kept;
    int32_t *label = new_ints(N, "label", 0, V - 1), kept_label[N];
    float *logits = new_values(DTYPE_F32, N * V, "logits", 3), kept_logits[N * V];
    for (int i = 0; i < N; i++) label[i] = is_none(i) ? -1 : label[i];
    const int64_t n = keep_rows(kept_label, label, sizeof *label);
    keep_rows(kept_logits, logits, V * sizeof(float));
    cross_entropy(&all, logits, label, N);
    cross_entropy(&kept, kept_logits, kept_label, n);
    check_rows("loss", all.loss, kept.loss, sizeof(float));
    check_rows("gradient by the logits", all.dlogits, kept.dlogits, V * sizeof(float));
    free(label), free(logits);
}

int main(void)
{
    stream = backend_cpu.stream_create(1);
    check_experts();
    for (int t = 0; t < 2; t++) check_embedding(float_types[t]);
    check_labels();
    backend_cpu.stream_destroy(stream);
    return test_end();
}
