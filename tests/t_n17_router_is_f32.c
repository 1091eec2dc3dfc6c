/* In a BF16 run the router works in F32: from its input and weights, the same choice and weights
 * come out of a router in double. */
// TEST ranks=1 timeout=30
#include "tests/golden_model.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

enum { MAX_E = 64 };

/* The largest value, the first of equals; it becomes -Inf. Lowers *margin to its distance from the
 * next, when that one is not taken: a distance that F32 cannot see is a tie. */
static int take_best(double *value, int n, bool last, double *margin)
{
    int best = 0;
    double next = -INFINITY;
    for (int i = 1; i < n; i++)
        if (value[i] > value[best]) best = i;
    for (int i = 0; i < n; i++)
        if (i != best) next = fmax(next, value[i]);
    if (last) *margin = fmin(*margin, value[best] - next);
    value[best] = -INFINITY;
    return best;
}

/* Experts of groups that are not kept become -Inf: a group counts by its two best. */
static void mask_groups(const struct config_model *c, double *value, double *margin)
{
    const int size = c->n_routed_experts / c->n_group;
    double group[MAX_E], copy[MAX_E], ignored = 0;
    bool keep[MAX_E] = {false};
    for (int g = 0; g < c->n_group; g++) {
        memcpy(copy, value + g * size, (size_t)size * sizeof *copy);
        group[g] = value[g * size + take_best(copy, size, false, &ignored)];
        if (size > 1) group[g] += value[g * size + take_best(copy, size, false, &ignored)];
    }
    for (int k = 0; k < c->topk_group; k++)
        keep[take_best(group, c->n_group, k == c->topk_group - 1, margin)] = true;
    for (int e = 0; e < c->n_routed_experts; e++)
        if (!keep[e / size]) value[e] = -INFINITY;
}

/* One token: x [D] of the compute type, as the router got it. */
static void check_token(const struct model *m, const struct layer *l, int64_t n)
{
    const struct config_model *c = &m->cfg->model;
    const struct layer_acts *a = &m->flow.acts[l->index];
    const float *w = l->router->w, *bias = m->bias + (int64_t)l->moe * m->E;
    const bf16 *x = (const bf16 *)a->n2 + n * m->D;
    double score[MAX_E], value[MAX_E], margin = INFINITY, sum = 0;
    bool chosen[MAX_E] = {false};
    int n_same = 0;
    for (int e = 0; e < m->E; e++) {
        double logit = 0;
        for (int d = 0; d < m->D; d++) logit += (double)bf16_to_f32(x[d]) * w[e * m->D + d];
        score[e] = 1 / (1 + exp(-logit));
        value[e] = score[e] + bias[e];
    }
    if (c->n_group > 1) mask_groups(c, value, &margin);
    for (int k = 0; k < m->K; k++) chosen[take_best(value, m->E, k == m->K - 1, &margin)] = true;
    const int32_t *expert = a->expert + n * m->K;
    for (int k = 0; k < m->K; k++) {
        n_same += chosen[expert[k]];
        sum += score[expert[k]];
    }
    EXPECT(n_same == m->K || margin < 2e-7, "layer %d, token %lld: %d of %d experts, margin %.2g",
           l->index, (long long)n, n_same, m->K, margin);
    for (int k = 0; k < m->K; k++) {
        const double want = c->routed_scaling_factor * score[expert[k]] / sum;
        EXPECT(fabs(a->weight[n * m->K + k] - want) < 1e-6 * want,
               "layer %d, token %lld: weight %.9g, expected %.9g", l->index, (long long)n,
               a->weight[n * m->K + k], want);
    }
}

static void check_case(const char *name)
{
    char bf16_compute[] = "train.compute_dtype=bf16", *overrides[] = {bf16_compute};
    struct golden *g = golden_open(name);
    static struct golden_model gm;
    golden_model_init(&gm, g, test_tmpdir(), 1, overrides);
    struct model *m = &gm.model;
    int32_t *token = golden_i32(g, "token");
    golden_model_forward(&gm, token, NULL);
    EXPECT(m->dt == DTYPE_BF16 && m->E <= MAX_E, "%s: not what this test is made for", name);
    for (int l = 0; l < m->n_layers; l++) {
        if (m->layer[l].moe < 0) continue;
        EXPECT(m->layer[l].router->dtype == DTYPE_F32, "%s is not F32", m->layer[l].router->name);
        for (int64_t n = 0; n < m->flow.N; n++) check_token(m, &m->layer[l], n);
    }
    model_backward(m);
    free(token);
    golden_model_free(&gm);
    golden_close(g);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    check_case("v3_groups_bias");
    check_case("v3_no_q_lora");
    check_case("mtp_depth2");
    return test_end();
}
