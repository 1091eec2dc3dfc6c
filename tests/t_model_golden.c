/* t_model_golden.c - the whole model forward and backward against the recorded numbers. */
// TEST ranks=1 timeout=60
/*
 * Recorded with Hugging Face's DeepseekV3ForCausalLM and DeepseekV2ForCausalLM, and where those
 * have nothing (MTP, balance loss, document mask) with independent PyTorch code; see
 * tests/golden/model/README.md.
 */
#include "tests/golden_model.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

static const char *const cases[] = {"v3_groups_bias", "v3_no_q_lora",     "v2_softmax",
                                    "v3_yarn",        "mtp_depth2",       "mtp_depth2_raw",
                                    "doc_mask",       "sequence_balance", NULL};

static void expect_near(const char *name, const char *what, double x, double want)
{
    /* Recorded F32 against F64 differ by up to 6e-8 (README.md); ours adds in another order. */
    EXPECT(fabs(x - want) <= 1e-6 * fabs(want), "%s: %s %.9g, expected %.9g", name, what, x, want);
}

static void check_losses(const char *name, const struct golden_model *gm, const struct golden *g)
{
    int64_t *n_target = golden_i64(g, "n_targets");
    double *mtp = golden_f64(g, "mtp_loss");
    for (int k = 0; k <= gm->model.n_mtp; k++)
        EXPECT(gm->n_label[k] == n_target[k], "%s: stage %d has %lld labels, expected %lld", name,
               k, (long long)gm->n_label[k], (long long)n_target[k]);
    expect_near(name, "main loss", golden_model_stage_loss(gm, 0), golden_scalar(g, "main_loss"));
    for (int k = 1; k <= gm->model.n_mtp; k++)
        expect_near(name, "MTP loss", golden_model_stage_loss(gm, k), mtp[k - 1]);
    expect_near(name, "balance loss", golden_model_balance_loss(gm),
                golden_scalar(g, "balance_loss"));
    expect_near(name, "loss", golden_model_loss(gm), golden_scalar(g, "loss"));
    free(mtp);
    free(n_target);
}

/* Recorded ids are ascending; ours come best first. */
static void sort_choice(int32_t *expert, float *weight, int K)
{
    for (int i = 1; i < K; i++)
        for (int j = i; j > 0 && expert[j] < expert[j - 1]; j--) {
            const int32_t e = expert[j];
            const float w = weight[j];
            expert[j] = expert[j - 1], expert[j - 1] = e;
            weight[j] = weight[j - 1], weight[j - 1] = w;
        }
}

static void check_choice(const char *name, const struct golden_model *gm, const struct golden *g)
{
    const struct model *m = &gm->model;
    const int64_t n = m->flow.N * m->K;
    for (int l = 0; l < m->n_layers; l++) {
        if (m->layer[l].moe < 0) continue;
        char id_name[64], weight_name[64];
        snprintf(id_name, sizeof id_name, "expert/%d", l);
        snprintf(weight_name, sizeof weight_name, "weight/%d", l);
        EXPECT(golden_count(g, id_name) == n, "%s: layer %d has %lld choices", name, l,
               (long long)n);
        int32_t *want = golden_i32(g, id_name);
        float *want_weight = golden_f32(g, weight_name);
        int32_t *id = malloc((size_t)n * sizeof *id);
        float *weight = malloc((size_t)n * sizeof *weight);
        memcpy(id, m->flow.acts[l].expert, (size_t)n * sizeof *id);
        memcpy(weight, m->flow.acts[l].weight, (size_t)n * sizeof *weight);
        for (int64_t i = 0; i < n; i += m->K) sort_choice(id + i, weight + i, m->K);
        EXPECT(!memcmp(id, want, (size_t)n * sizeof *id), "%s: layer %d chose other experts", name,
               l);
        /* Recorded F32 against F64: 5e-7. */
        const double error = golden_error(weight, want_weight, n);
        EXPECT(error <= 1e-5, "%s: layer %d: router weights differ by %.2g", name, l, error);
        free(weight);
        free(id);
        free(want_weight);
        free(want);
    }
}

static void check_gradients(const char *name, const struct golden_model *gm, const struct golden *g)
{
    double worst = 0;
    for (int i = 0; i < gm->params.n_params; i++) {
        const struct param *p = &gm->params.param[i];
        char grad_name[96];
        snprintf(grad_name, sizeof grad_name, "grad/%s", p->name);
        EXPECT(golden_count(g, grad_name) == p->n, "%s has %lld elements", p->name,
               (long long)p->n);
        float *want = golden_f32(g, grad_name);
        const double error = golden_error(p->grad, want, p->n);
        /* Of the tensor's largest value. Recorded F32 against F64: 2e-6. */
        EXPECT(error <= 1e-4, "%s: gradient of %s differs by %.2g", name, p->name, error);
        worst = fmax(worst, error);
        free(want);
    }
    printf("%-16s loss %.7f, worst gradient error %.1e\n", name, golden_model_loss(gm), worst);
}

static void check_case(const char *name)
{
    char poison[] = "debug.poison_memory=true", *overrides[] = {poison};
    struct golden *g = golden_open(name);
    struct golden_model gm;
    golden_model_init(&gm, g, test_tmpdir(), 1, overrides);
    int32_t *token = golden_i32(g, "token");
    int32_t *doc_start = golden_has(g, "doc_start") ? golden_i32(g, "doc_start") : NULL;
    const size_t bytes = gm.grads.used;
    char *first = malloc(bytes);

    for (int run = 0; run < 2; run++) { /* the second must give the same bits */
        golden_model_forward(&gm, token, doc_start);
        if (run == 0) check_losses(name, &gm, g);
        if (run == 0) check_choice(name, &gm, g);
        model_backward(&gm.model);
        if (run == 0) check_gradients(name, &gm, g);
        if (run == 0) memcpy(first, gm.grads.base, bytes);
    }
    EXPECT(!memcmp(first, gm.grads.base, bytes), "%s: a second run gives other bits", name);
    free(first);
    free(doc_start);
    free(token);
    golden_model_free(&gm);
    golden_close(g);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; cases[i]; i++) check_case(cases[i]);
    return test_end();
}
