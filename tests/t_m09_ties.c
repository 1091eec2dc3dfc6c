/* Where every score ties, all tokens choose the lowest ids on every mesh and in both dtypes, and
 * backward uses the choice that forward has kept: nothing is chosen a second time. */
// TEST ranks=1,4 timeout=60
#include "optim/shard.h"
#include "tests/run_rig.h"

#include <string.h>

/* A micro-batch of one token id, through routers without weights: all scores are 0.5. */
static void forward(struct model *m)
{
    int32_t token[8 * 33], doc_start[8 * 33] = {0};
    for (size_t i = 0; i < sizeof token / sizeof *token; i++) token[i] = 7;
    CHECK(m->flow.B * (m->flow.T + 1) <= 8 * 33, "%d sequences of %d", m->flow.B, m->flow.T);
    for (int l = 0; l < m->n_layers; l++)
        if (m->layer[l].router)
            memset(m->layer[l].router->w, 0, (size_t)m->layer[l].router->n * sizeof(float));
    for (int k = 0; k <= m->n_mtp; k++) m->flow.loss_scale[k] = 1.0f / (float)m->flow.Na;
    m->flow.balance_scale = 1e-4f;
    model_load(m, token, doc_start, NULL);
    model_forward(m, true);
}

static void check_choice(const struct model *m)
{
    for (int l = 0; l < m->n_layers; l++) {
        const int32_t *expert = m->flow.acts[l].expert;
        for (int64_t i = 0; m->layer[l].moe >= 0 && i < m->flow.N * m->K; i++)
            EXPECT(expert[i] == i % m->K, "layer %d token %lld: expert %d in place %lld", l,
                   (long long)(i / m->K), expert[i], (long long)(i % m->K));
    }
}

/* This rank's gradients, one bucket after the other. Free with free. */
static float *copy_gradients(const struct param_table *t, size_t *n)
{
    *n = 0;
    for (int i = 0; i < N_BUCKETS; i++) *n += (size_t)t->bucket[i].n;
    float *copy = malloc(*n * sizeof *copy), *at = copy;
    for (int i = 0; i < N_BUCKETS; at += t->bucket[i++].n)
        if (t->bucket[i].n > 0) memcpy(at, t->bucket[i].grad, (size_t)t->bucket[i].n * sizeof *at);
    return copy;
}

static void check_mesh(const char *overrides)
{
    static struct run_rig rig;
    float *grad[2];
    size_t n;
    run_rig_init(&rig, "run", overrides);
    struct run *run = &rig.run;
    for (int again = 0; again < 2; again++) {
        optim_zero_gradients(&run->optim);
        forward(&run->model);
        check_choice(&run->model);
        /* Whoever chose again from here on would choose the other half. */
        for (int e = run->model.K; again && e < run->model.E; e++)
            run_rig_set_bias(&rig, e, 1000.0f);
        model_backward(&run->model);
        grad[again] = copy_gradients(&run->params, &n);
    }
    EXPECT(memcmp(grad[0], grad[1], n * sizeof(float)) == 0,
           "%s: the biases of after forward change the gradients", overrides);
    float most = 0;
    for (size_t i = 0; i < n; i++) most = grad[0][i] > most ? grad[0][i] : most;
    EXPECT(most > 0, "%s: no gradients", overrides);
    free(grad[0]);
    free(grad[1]);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    static const char *const dtypes[] = {"train.compute_dtype=f32", "train.compute_dtype=bf16"};
    const int n_ranks = run_rig_begin(&argc, &argv);
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < RUN_RIG_N_MESHES; i++) {
            const struct run_rig_mesh *mesh = &run_rig_meshes[i];
            char overrides[128];
            if (mesh->ranks != n_ranks) continue;
            snprintf(overrides, sizeof overrides, "topology.tp=%d topology.ep=%d %s", mesh->tp,
                     mesh->ep, dtypes[d]);
            check_mesh(overrides);
        }
    return test_end();
}
