/* t_model_golden_bias.c - the update of the selection bias against recorded numbers. */
// TEST ranks=1 timeout=30
#include "kernels/backend.h"
#include "tests/golden.h"
#include "tests/test.h"

#include <math.h>

/* Counts of one step to new biases, recorded with PyTorch. Rows: mixed loads; equal loads, which
 * move nothing; all tokens on one expert; one token short of 40,841 an expert, which only integers
 * see; loads of 2^30. */
static void check_update(const struct golden *g, bool centred)
{
    enum { E = 8 };
    const int64_t rows = golden_count(g, "count") / E;
    int64_t *count = golden_i64(g, "count");
    float *bias = golden_f32(g, "bias");
    float *want = golden_f32(g, centred ? "centred" : "plain");
    struct stream *s = backend_cpu.stream_create(1);
    for (int64_t row = 0; row < rows; row++)
        backend_cpu.bias_update(s, bias + row * E, count + row * E, E,
                                (float)golden_scalar(g, "speed"), centred);
    for (int64_t i = 0; i < rows * E; i++) {
        /* One addition in F32: equal. The mean of the steps may be rounded otherwise, which is
         * an ulp of the largest bias. */
        const double error = fabs((double)bias[i] - want[i]);
        EXPECT(error <= (centred ? 1.5e-8 : 0), "%s, row %lld, expert %lld: %.9g, expected %.9g",
               centred ? "centred" : "plain", (long long)(i / E), (long long)(i % E), bias[i],
               want[i]);
    }
    backend_cpu.stream_destroy(s);
    free(want);
    free(bias);
    free(count);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct golden *g = golden_open("bias_update");
    check_update(g, false);
    check_update(g, true);
    golden_close(g);
    return test_end();
}
