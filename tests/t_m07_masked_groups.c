/* An expert of a dropped group never wins, however low the kept ones score, and a group's score is
 * the sum of its two best; in the operation and in a whole model whose router has no weights. */
// TEST ranks=1 timeout=30
#include "kernels.h"
#include "run_rig.h"

enum { E = 8, K = 4 };
static const struct router_shape shape = {1, E,    K,   ROUTER_SIGMOID, ROUTER_GROUP_TOP2_SUM, 4,
                                          2, true, 1.0f};

/* Expert ids, best first, when score + bias is what is given: logits of 0 are scores of 0.5. */
static void expect_choice(const float *biased, const int32_t *want)
{
    const float logits[E] = {0};
    float bias[E], score[E], weight[K];
    int32_t expert[K];
    struct stream *s = backend_cpu.stream_create(1);
    for (int e = 0; e < E; e++) bias[e] = biased[e] - 0.5f;
    backend_cpu.router_fwd(s, score, expert, weight, logits, bias, NULL, &shape);
    for (int k = 0; k < K; k++)
        EXPECT(expert[k] == want[k], "place %d: expert %d, expected %d", k, expert[k], want[k]);
    backend_cpu.stream_destroy(s);
}

/* Negative scores of kept groups stand against 0 and more of dropped ones. */
static const float negative[E] = {0.9f, -0.4f, 0.8f, -0.3f, 0.1f, 0.1f, 0.05f, 0.05f};
static const int32_t negative_choice[K] = {0, 2, 3, 1};

/* By their best alone groups 0 and 2 would be kept; by the sum of their two best it is
 * groups 1 and 3. */
static const float two_best[E] = {0.9f, -0.9f, 0.5f, 0.4f, 0.7f, -0.6f, 0.45f, 0.3f};
static const int32_t two_best_choice[K] = {2, 6, 3, 7};

static void check_model(void)
{
    static struct run_rig rig;
    run_rig_data();
    run_rig_init(&rig, "run", "train.steps=1 optimizer.warmup_steps=1");
    const struct model *m = &rig.run.model;
    for (int l = 0; l < m->n_layers; l++)
        if (m->layer[l].router)
            memset(m->layer[l].router->w, 0, (size_t)m->layer[l].router->n * sizeof(float));
    for (int e = 0; e < E; e++) run_rig_set_bias(&rig, e, negative[e] - 0.5f);
    run_rig_step(&rig);
    const int64_t tokens = (int64_t)rig.cfg.train.global_batch * rig.cfg.data.sequence_length;
    for (int i = 0; i < m->n_moe * E; i++)
        EXPECT(rig.run.expert_total[i] == (i % E < K ? tokens : 0), "expert %d of layer %d: %lld",
               i % E, i / E, (long long)rig.run.expert_total[i]);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    expect_choice(negative, negative_choice);
    expect_choice(two_best, two_best_choice);
    check_model();
    return test_end();
}
