/* t_model_golden_bias.c - the selection bias: its update, and that it only chooses. */
// TEST ranks=1 timeout=30
#include "tests/golden_model.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

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

/* Add shift to all biases: the choice is the same, so every bit of the loss and of the gradients
 * must be. At -2 all biased scores are negative, so a masked group at 0 would win. */
static void check_shift(struct golden_model *gm, const int32_t *token, float shift)
{
    struct model *m = &gm->model;
    golden_model_forward(gm, token, NULL);
    model_backward(m);
    const double loss = golden_model_loss(gm);
    const size_t bytes = gm->grads.used;
    char *grads = malloc(bytes);
    memcpy(grads, gm->grads.base, bytes);

    for (int i = 0; i < m->n_moe * m->E; i++) m->bias[i] += shift;
    golden_model_forward(gm, token, NULL);
    model_backward(m);
    EXPECT(golden_model_loss(gm) == loss, "biases %+g: loss %.9g instead of %.9g", shift,
           golden_model_loss(gm), loss);
    EXPECT(!memcmp(grads, gm->grads.base, bytes), "biases %+g change gradients", shift);
    free(grads);
}

static void check_only_chooses(const char *name, float shift)
{
    struct golden *g = golden_open(name);
    struct golden_model gm;
    golden_model_init(&gm, g, test_tmpdir(), 0, NULL);
    int32_t *token = golden_i32(g, "token");
    check_shift(&gm, token, shift);
    free(token);
    golden_model_free(&gm);
    golden_close(g);
}

/* Biases far apart do change the choice, or the checks above would pass without any. */
static void check_bias_is_used(void)
{
    struct golden *g = golden_open("v3_groups_bias");
    struct golden_model gm;
    golden_model_init(&gm, g, test_tmpdir(), 0, NULL);
    int32_t *token = golden_i32(g, "token");
    const struct model *m = &gm.model;
    for (int i = 0; i < m->n_moe * m->E; i++) m->bias[i] = i % m->E < m->K ? 10.0f : 0.0f;
    golden_model_forward(&gm, token, NULL);
    for (int l = 0; l < m->n_layers; l++)
        for (int64_t i = 0; m->layer[l].moe >= 0 && i < m->flow.N * m->K; i++)
            EXPECT(m->flow.acts[l].expert[i] < m->K, "layer %d chose expert %d", l,
                   m->flow.acts[l].expert[i]);
    model_backward(&gm.model);
    free(token);
    golden_model_free(&gm);
    golden_close(g);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct golden *g = golden_open("bias_update");
    check_update(g, false);
    check_update(g, true);
    golden_close(g);
    check_only_chooses("v3_groups_bias", 1.0f);
    check_only_chooses("v3_groups_bias", -2.0f);
    check_bias_is_used();
    return test_end();
}
