/* BF16 results are the F32 results of the same inputs, rounded once: bit for bit, sums included. */
// TEST ranks=1 timeout=30
#include "kernels.h"

enum { N = 7, D = 1030, K = 4, MAX_IN = 4 };

static struct stream *stream;

/* One operation: n_in arrays of in_size numbers in, out_size numbers of dt out; f32 are further
 * outputs that stay F32 and must therefore have the same bits. */
struct op {
    const char *name;
    void (*run)(void *out, float *f32, void *const *in, enum dtype dt);
    int n_in;
    int64_t in_size, out_size, f32_size;
};

static float *g, *weight, *table; /* [D], [N, K], [2, D] */
static const int32_t place[N * K] = {3,  2,  1,  0,  7,  6,  5,  4,  11, 10, 9,  8,  15, 14,
                                     13, 12, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27};
static const struct norm_shape norm = {N, D, 0, 0, 1e-6f};

static void add(void *out, float *f32, void *const *in, enum dtype dt)
{
    (void)f32;
    backend_cpu.add(stream, out, in[0], dt, in[1], dt, N * D);
}

static void rmsnorm_fwd(void *out, float *f32, void *const *in, enum dtype dt)
{
    backend_cpu.rmsnorm_fwd(stream, out, f32, in[0], g, dt, &norm);
}

static void rmsnorm_bwd(void *out, float *f32, void *const *in, enum dtype dt)
{
    const float rstd[N] = {0.3f, 0.7f, 1.1f, 0.9f, 2.3f, 0.1f, 1.7f};
    memset(f32, 0, D * sizeof *f32);
    backend_cpu.rmsnorm_bwd(stream, out, f32, in[0], in[1], rstd, g, dt, &norm, false);
}

static void rope(void *out, float *f32, void *const *in, enum dtype dt)
{
    const struct rope_shape shape = {N, 1, D, D, D, 0};
    (void)f32;
    memcpy(out, in[0], N * D * dtype_bytes(dt));
    backend_cpu.rope(stream, out, dt, table, 0, 2, &shape, false);
}

static void swiglu_fwd(void *out, float *f32, void *const *in, enum dtype dt)
{
    (void)f32;
    backend_cpu.swiglu_fwd(stream, out, in[0], in[1], dt, N * D);
}

static void swiglu_bwd(void *out, float *f32, void *const *in, enum dtype dt)
{
    (void)f32;
    backend_cpu.swiglu_bwd(stream, out, elem(out, dt, N * D), elem(out, dt, 2 * N * D), in[0],
                           in[1], in[2], dt, N * D);
}

static void combine_fwd(void *out, float *f32, void *const *in, enum dtype dt)
{
    (void)f32;
    backend_cpu.combine_fwd(stream, out, in[0], place, weight, in[1], in[2], dt, N, K, D);
}

static void combine_bwd(void *out, float *f32, void *const *in, enum dtype dt)
{
    backend_cpu.combine_bwd(stream, out, f32, in[1], in[0], place, weight, dt, N, K, D);
}

static const struct op ops[] = {
    {"add", add, 2, N *D, N *D, 0},
    {"rmsnorm_fwd", rmsnorm_fwd, 1, N *D, N *D, N},
    {"rmsnorm_bwd", rmsnorm_bwd, 2, N *D, N *D, D},
    {"rope", rope, 1, N *D, N *D, 0},
    {"swiglu_fwd", swiglu_fwd, 2, N *D, N *D, 0},
    {"swiglu_bwd", swiglu_bwd, 3, N *D, 3 * N *D, 0},
    {"combine_fwd", combine_fwd, 3, N *K *D, N *D, 0},
    {"combine_bwd", combine_bwd, 2, N *K *D, N *K *D, N *K},
};

static void check(const struct op *op)
{
    const char *seeds[MAX_IN] = {"in0", "in1", "in2", "in3"};
    void *half[MAX_IN], *full[MAX_IN];
    const size_t f32_bytes = (size_t)op->f32_size * sizeof(float);
    void *out[2] = {new_bytes((size_t)op->out_size * 2), new_bytes((size_t)op->out_size * 4)};
    float *f32[2] = {new_bytes(f32_bytes), new_bytes(f32_bytes)};

    for (int i = 0; i < op->n_in; i++) {
        half[i] = new_values(DTYPE_BF16, op->in_size, seeds[i], 2);
        full[i] = new_cast(DTYPE_F32, half[i], DTYPE_BF16, op->in_size);
    }
    op->run(out[0], f32[0], half, DTYPE_BF16);
    op->run(out[1], f32[1], full, DTYPE_F32);
    const int64_t differ = rounded_differently(out[0], out[1], op->out_size);
    EXPECT(differ == 0, "%s: %ld of %ld differ", op->name, (long)differ, (long)op->out_size);
    EXPECT(memcmp(f32[0], f32[1], f32_bytes) == 0, "%s: F32 results differ", op->name);
    for (int i = 0; i < op->n_in; i++) free(half[i]), free(full[i]);
    for (int i = 0; i < 2; i++) free(out[i]), free(f32[i]);
}

/* One, and three times 2^-8: each alone is lost in a BF16 sum, together they are three units of its
 * last place. The order of the experts must not matter. */
static void check_combine_order(void)
{
    const float ones[4] = {1, 1, 1, 1};
    const bf16 one = f32_to_bf16(1), small = f32_to_bf16(0x1p-8f);
    for (int32_t big = 0; big < 4; big++) {
        const int32_t in_order[4] = {0, 1, 2, 3};
        bf16 rows[4] = {small, small, small, small}, y;
        rows[big] = one;
        backend_cpu.combine_fwd(stream, &y, rows, in_order, ones, NULL, NULL, DTYPE_BF16, 1, 4, 1);
        EXPECT(y == f32_to_bf16(1 + 3 * 0x1p-8f), "expert %d first: %.9g", big,
               (double)bf16_to_f32(y));
    }
}

int main(void)
{
    stream = backend_cpu.stream_create(1);
    g = new_values(DTYPE_F32, D, "g", 2);
    weight = new_values(DTYPE_F32, N * K, "weight", 1);
    table = new_values(DTYPE_F32, 2 * D, "table", 1);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) check(&ops[i]);
    check_combine_order();
    backend_cpu.stream_destroy(stream);
    free(g), free(weight), free(table);
    return test_end();
}
