/* The outputs of a token's experts are added in F32 and rounded once: the same bits for every order
 * of the experts, and the exact sum's rounding, where BF16 steps would lose the small ones. */
// TEST ranks=1 timeout=30
#include "kernels.h"

enum { K = 4, D = 3 };

/* 1 + 2^-8 is halfway between two BF16 numbers and rounds down to 1 each time. */
static const float outputs[K] = {1.0f, 0x1p-8f, 0x1p-8f, 0x1p-8f};

/* Expert k of the token has output[order[k]]; rest: added to it like residual and shared expert. */
static void check(struct stream *s, const int order[K], const float *weight, const float *rest)
{
    bf16 rows[K * D], residual[D], shared[D], y[D];
    int32_t place[K];
    double exact = rest ? rest[0] + rest[1] : 0;
    for (int k = 0; k < K; k++) {
        place[k] = (k + 1) % K; /* rows lie elsewhere than in the order of choice */
        for (int d = 0; d < D; d++) rows[place[k] * D + d] = f32_to_bf16(outputs[order[k]]);
        exact += (weight ? weight[k] : 1.0) * outputs[order[k]];
    }
    for (int d = 0; d < D; d++) {
        residual[d] = f32_to_bf16(rest ? rest[0] : 0);
        shared[d] = f32_to_bf16(rest ? rest[1] : 0);
    }
    backend_cpu.combine_fwd(s, y, rows, place, weight, rest ? residual : NULL, rest ? shared : NULL,
                            DTYPE_BF16, 1, K, D);
    for (int d = 0; d < D; d++)
        EXPECT(y[d] == f32_to_bf16((float)exact), "order %d %d %d %d: %.9g, the exact sum is %.9g",
               order[0], order[1], order[2], order[3], (double)bf16_to_f32(y[d]), exact);
}

int main(void)
{
    static const float equal[K] = {0.25f, 0.25f, 0.25f, 0.25f}, rest[2] = {0x1p-8f, 0x1p-8f};
    struct stream *s = backend_cpu.stream_create(1);
    for (int i = 0; i < K * K * K * K; i++) {
        const int order[K] = {i % K, i / K % K, i / K / K % K, i / K / K / K};
        int seen = 0;
        for (int k = 0; k < K; k++) seen |= 1 << order[k];
        if (seen != (1 << K) - 1) continue; /* not a permutation */
        check(s, order, NULL, NULL);        /* gradients on their way back have no weights */
        check(s, order, equal, NULL);
        check(s, order, equal, rest);
    }
    backend_cpu.stream_destroy(s);
    return test_end();
}
