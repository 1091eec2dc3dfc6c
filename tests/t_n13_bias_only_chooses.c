/* The selection bias only chooses: the same bias more on every expert changes no bit of losses and
 * gradients, and the weight of a chosen expert is its unbiased score over the sum of the chosen. */
// TEST ranks=1 timeout=30
#include "tests/golden_model.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

/* weight_k = scale x s_k / sum of the chosen s, with scores as they came out of the sigmoid. */
static void check_weights(const struct model *m)
{
    const double scale = m->cfg->model.routed_scaling_factor;
    for (int l = 0; l < m->n_layers; l++) {
        if (m->layer[l].moe < 0) continue;
        const struct layer_acts *a = &m->flow.acts[l];
        for (int64_t n = 0; n < m->flow.N; n++) {
            const float *score = a->score + n * m->E, *weight = a->weight + n * m->K;
            const int32_t *expert = a->expert + n * m->K;
            double sum = 0;
            for (int k = 0; k < m->K; k++) sum += score[expert[k]];
            for (int k = 0; k < m->K; k++) {
                const double want = scale * score[expert[k]] / sum;
                /* a sum of K and two products in F32 */
                EXPECT(fabs(weight[k] - want) < 1e-6 * want,
                       "layer %d, token %lld: weight %.9g, expected %.9g", l, (long long)n,
                       weight[k], want);
            }
        }
    }
}

/* Add shift to all biases: the choice is the same, so every bit of the loss and of the gradients
 * must be. At -2 all biased scores are negative, so a masked group at 0 would win. */
static void check_shift(struct golden_model *gm, const int32_t *token, float shift)
{
    struct model *m = &gm->model;
    golden_model_forward(gm, token, NULL);
    check_weights(m);
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
    check_only_chooses("v3_groups_bias", 1.0f);
    check_only_chooses("v3_groups_bias", -2.0f);
    check_bias_is_used();
    return test_end();
}
