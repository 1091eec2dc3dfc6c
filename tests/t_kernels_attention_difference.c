/* Along random directions attention_bwd's slope is a central difference of attention in double. */
// TEST ranks=1 timeout=30
#include "attention_case.h"

enum operand { Q, KV, K_PE, N_OPERANDS };

/* Move the reference's operand by step along the direction of that key. */
static void move(double *x, int64_t n, uint64_t key, double step)
{
    float *const u = case_random(DTYPE_F32, n, key);
    for (int64_t i = 0; i < n; i++) x[i] += step * (double)u[i];
    mem_free(u);
}

/* The gradient times that direction, and in *size the same without signs. */
static double slope(const float *gradient, int64_t stride, int64_t n, int d, uint64_t key,
                    double *size)
{
    float *const u = case_random(DTYPE_F32, n, key);
    double sum = 0.0;
    *size = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double g = gradient[i / d * stride + i % d];
        sum += g * (double)u[i];
        *size += fabs(g * (double)u[i]);
    }
    mem_free(u);
    return sum;
}

static void check(const struct attention_shape *a, enum documents documents)
{
    struct attention_case c = {.shape = *a, .documents = documents, .dt = DTYPE_F32};
    struct attention_reference r;
    case_init(&c);
    case_run(&c, 1);
    case_reference(&r, &c);
    double *const x[] = {r.q, r.kv, r.k_pe};
    const float *const gradient[] = {c.dq, c.dkv, c.dk_pe};
    const int64_t n[] = {reference_n_q(a), reference_n_kv(a), reference_n_pe(a)};
    const int d[] = {a->d_nope + a->d_rope, a->d_nope + a->d_v, a->d_rope};
    for (int i = 0; i < N_OPERANDS; i++) {
        const uint64_t key = 100 + (uint64_t)i;
        const double step = 1e-4; /* error of the difference about step^2 */
        move(x[i], n[i], key, step);
        const double above = reference_run(&r, false);
        move(x[i], n[i], key, -2.0 * step);
        const double below = reference_run(&r, false);
        move(x[i], n[i], key, step);
        double size;
        const int64_t stride = i == K_PE ? a->k_pe_stride : d[i];
        const double got = slope(gradient[i], stride, n[i], d[i], key, &size);
        const double want = (above - below) / (2.0 * step);
        /* F32 gradients are right to about 1e-6 of their size; 1e-5 leaves room for step^2. Where
         * they are 0 (documents of one token) only rounding is left, far below 1e-5. */
        EXPECT(fabs(got - want) <= 1e-5 * size + 1e-5,
               "operand %d documents %d: slope %.9g, difference %.9g, size %.3g", i, (int)documents,
               got, want, size);
    }
    reference_free(&r);
    case_free(&c);
}

int main(void)
{
    static const struct attention_shape shapes[] = {
        {2, 7, 2, 5, 4, 6, 7, 0.4f},
        {1, 135, 2, 8, 4, 8, 4, 0.3f},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int documents = 0; documents < N_DOCUMENTS; documents++)
            check(&shapes[i], (enum documents)documents);
    return test_end();
}
