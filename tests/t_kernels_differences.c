/* Backwards of the norm, RoPE, SwiGLU, combine and cross entropy against finite
 * differences of their forwards in double. */
// TEST ranks=1 timeout=30
#include "kernels.h"

/* N tokens, D wide (and the vocabulary of the loss), K rows a token. dy weighs the outputs. */
enum { N = 4, D = 14, K = 2, MAX_X = N * K * D + N * K + 2 * N * D };

static struct stream *stream;
static float x[MAX_X], dy[N * D], grad[MAX_X], table[3 * D];
static const int32_t label[N] = {3, -1, 0, D - 1};
static const int32_t place[N * K] = {7, 0, 3, 4, 1, 6, 5, 2};

/* x: input [N, D], gain [D] */
static double norm_loss(const double *in, const void *unused)
{
    double sum = 0;
    (void)unused;
    for (int n = 0; n < N; n++) {
        double squares = 0;
        for (int d = 0; d < D; d++) squares += in[n * D + d] * in[n * D + d];
        const double r = 1 / sqrt(squares / D + 1e-6);
        for (int d = 0; d < D; d++)
            sum += (double)dy[n * D + d] * in[n * D + d] * r * in[N * D + d];
    }
    return sum;
}

static void norm_grad(void)
{
    const struct norm_shape shape = {N, D, 0, 0, 1e-6f};
    float y[N * D], rstd[N];
    memset(grad, 0, sizeof grad);
    backend_cpu.rmsnorm_fwd(stream, y, rstd, x, x + N * D, DTYPE_F32, &shape);
    backend_cpu.rmsnorm_bwd(stream, grad, grad + N * D, dy, x, rstd, x + N * D, DTYPE_F32, &shape,
                            false);
}

/* x: input [N, D], one head; position n % 3 */
static double rope_loss(const double *in, const void *unused)
{
    double sum = 0;
    (void)unused;
    for (int i = 0; i < N * D; i += 2) {
        const float *phase = table + i / D % 3 * D + i % D;
        const double c = (double)phase[0], s = (double)phase[1];
        sum += (double)dy[i] * (in[i] * c - in[i + 1] * s);
        sum += (double)dy[i + 1] * (in[i] * s + in[i + 1] * c);
    }
    return sum;
}

static void rope_grad(void)
{
    const struct rope_shape shape = {N, 1, D, D, D, 0};
    memcpy(grad, dy, sizeof dy);
    backend_cpu.rope(stream, grad, DTYPE_F32, table, 0, 3, &shape, true);
}

/* x: gate [N * D], up [N * D] */
static double swiglu_loss(const double *in, const void *unused)
{
    double sum = 0;
    (void)unused;
    for (int i = 0; i < N * D; i++)
        sum += (double)dy[i] * in[i] / (1 + exp(-in[i])) * in[N * D + i];
    return sum;
}

static void swiglu_grad(void)
{
    backend_cpu.swiglu_bwd(stream, grad, grad + N * D, NULL, dy, x, x + N * D, DTYPE_F32, N * D);
}

/* x: rows [N * K, D], weight [N, K] */
static double combine_loss(const double *in, const void *unused)
{
    double sum = 0;
    (void)unused;
    for (int i = 0; i < N * K; i++)
        for (int d = 0; d < D; d++)
            sum += (double)dy[i / K * D + d] * in[N * K * D + i] * in[place[i] * D + d];
    return sum;
}

static void combine_grad(void)
{
    backend_cpu.combine_bwd(stream, grad, grad + N * K * D, dy, x, place, x + N * K * D, DTYPE_F32,
                            N, K, D);
}

/* x: logits [N, D] */
static double entropy_loss(const double *in, const void *unused)
{
    double sum = 0;
    (void)unused;
    for (int n = 0; n < N; n++) {
        double exps = 0;
        for (int d = 0; d < D; d++) exps += exp(in[n * D + d]);
        if (label[n] >= 0) sum += 0.3 * (log(exps) - in[n * D + label[n]]);
    }
    return sum;
}

static void entropy_grad(void)
{
    float max[N], sum[N], target[N], loss[N];
    backend_cpu.cross_entropy_max(stream, max, x, N, D);
    backend_cpu.cross_entropy_sum(stream, sum, target, x, max, label, N, D, 0);
    backend_cpu.cross_entropy_loss(stream, loss, grad, DTYPE_F32, x, max, sum, target, label, 0.3f,
                                   N, D, 0);
}

int main(void)
{
    static const struct {
        const char *name;
        double (*loss)(const double *in, const void *unused);
        void (*grad)(void);
        int n;
    } ops[] = {{"rmsnorm", norm_loss, norm_grad, N * D + D},
               {"rope", rope_loss, rope_grad, N * D},
               {"swiglu", swiglu_loss, swiglu_grad, 2 * N * D},
               {"combine", combine_loss, combine_grad, N * K * D + N * K},
               {"cross entropy", entropy_loss, entropy_grad, N * D}};
    float *values = new_values(DTYPE_F32, MAX_X, "x", 1.5);
    float *weights = new_values(DTYPE_F32, N * D, "dy", 1);
    double at[MAX_X];

    stream = backend_cpu.stream_create(1);
    memcpy(x, values, sizeof x);
    memcpy(dy, weights, sizeof dy);
    for (int i = 0; i < MAX_X; i++) at[i] = (double)x[i];
    for (int i = 0; i < 3 * D; i++) table[i] = (float)(i % 2 ? sin(i / 2) : cos(i / 2));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        memset(grad, 0xFF, sizeof grad);
        ops[i].grad();
        const double error = difference_error(ops[i].loss, at, NULL, ops[i].n, grad, DTYPE_F32);
        EXPECT(error < 1e-6, "%s: %.2e", ops[i].name, error); /* some F32 roundings */
    }
    backend_cpu.stream_destroy(stream);
    free(values), free(weights);
    return test_end();
}
