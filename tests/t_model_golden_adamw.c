/* t_model_golden_adamw.c - five steps of training against the recorded torch.optim.AdamW. */
// TEST ranks=1 timeout=60
/*
 * Recorded with Hugging Face's model: a new batch each step, decay on matrices only, the gradient
 * clipped to a fifth of its norm, the selection biases moved by each step's counts.
 */
#include "optim/optim.h"
#include "tests/golden_model.h"
#include "tests/test.h"

#include <math.h>

enum { N_STEPS = 5 };

static void check_step(struct golden_model *gm, struct optim *opt, const struct golden *g, int step)
{
    struct model *m = &gm->model;
    const int64_t n_count = (int64_t)m->n_moe * m->E;
    const int64_t n_token = golden_count(g, "token") / N_STEPS;
    int32_t *token = golden_i32(g, "token");
    double *loss = golden_f64(g, "step_loss"), *norm = golden_f64(g, "step_grad_norm");
    int64_t *want = golden_i64(g, "step_count");
    int64_t *count = calloc((size_t)n_count, sizeof *count);

    golden_model_forward(gm, token + step * n_token, NULL);
    model_backward(m);
    optim_reduce_gradients(opt);
    const double my_norm = optim_grad_norm(opt), my_loss = golden_model_loss(gm);
    optim_step(opt, step + 1, gm->cfg.optimizer.lr, my_norm);
    model_update_router_bias(m, count, gm->cfg.train.router_bias_speed);
    printf("step %d: loss %.7f (recorded %.7f), norm %.6f (%.6f)\n", step + 1, my_loss, loss[step],
           my_norm, norm[step]);

    /* With the recorded eps of 1e-5, F32 and F64 of the recorded code agree to 1e-7 in the loss
     * and 2e-7 in the norm over all five steps. */
    EXPECT(fabs(my_loss / loss[step] - 1) <= 1e-6, "step %d: loss %.8g, expected %.8g", step + 1,
           my_loss, loss[step]);
    EXPECT(fabs(my_norm / norm[step] - 1) <= 2e-6, "step %d: gradient norm %.8g, expected %.8g",
           step + 1, my_norm, norm[step]);
    for (int64_t i = 0; i < n_count; i++)
        EXPECT(count[i] == want[step * n_count + i], "step %d: expert %lld: %lld tokens, not %lld",
               step + 1, (long long)i, (long long)count[i], (long long)want[step * n_count + i]);
    free(count);
    free(want);
    free(norm);
    free(loss);
    free(token);
}

static double l2(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sqrt(sum);
}

static void check_weights(const struct golden_model *gm, const struct golden *g)
{
    const double way = N_STEPS * gm->cfg.optimizer.lr; /* about the farthest a weight can go */
    for (int i = 0; i < gm->params.n_params; i++) {
        const struct param *p = &gm->params.param[i];
        char name[96];
        snprintf(name, sizeof name, "final_l2/%s", p->name);
        const double norm = l2(p->w, p->n), want_norm = golden_scalar(g, name);
        EXPECT(fabs(norm / want_norm - 1) <= 1e-6, "%s: norm %.9g, expected %.9g", p->name, norm,
               want_norm);
        snprintf(name, sizeof name, "final/%s", p->name);
        if (!golden_has(g, name)) continue;
        float *want = golden_f32(g, name);
        double worst = 0;
        for (int64_t j = 0; j < p->n; j++)
            worst = fmax(worst, fabs((double)((float *)p->w)[j] - want[j]));
        EXPECT(worst <= 1e-3 * way, "%s: a weight is off by %.2g of %.2g", p->name, worst, way);
        free(want);
    }
}

static void check_biases(const struct golden_model *gm, const struct golden *g)
{
    const struct model *m = &gm->model;
    for (int l = 0; l < m->n_layers; l++) {
        if (m->layer[l].moe < 0) continue;
        char name[96];
        snprintf(name, sizeof name, "final_router_bias/%d", l);
        float *want = golden_f32(g, name);
        for (int e = 0; e < m->E; e++) {
            const float bias = m->bias[m->layer[l].moe * m->E + e];
            EXPECT(bias == want[e], "layer %d: bias of expert %d is %.9g, expected %.9g", l, e,
                   bias, want[e]);
        }
        free(want);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct golden *g = golden_open("adamw");
    struct golden_model gm;
    golden_model_init(&gm, g, test_tmpdir(), 0, NULL);

    struct optim opt;
    struct arena arena;
    arena_init(&arena, "optimizer", NULL, 0, false);
    optim_init(&opt, &gm.cfg, NULL, NULL, &gm.comm, &gm.params, &arena);
    optim_free(&opt);
    const size_t bytes = arena.peak;
    arena_init(&arena, "optimizer", backend_cpu.alloc(bytes, "optimizer"), bytes, true);
    optim_init(&opt, &gm.cfg, &backend_cpu, gm.stream, &gm.comm, &gm.params, &arena);

    for (int step = 0; step < N_STEPS; step++) check_step(&gm, &opt, g, step);
    check_weights(&gm, g);
    check_biases(&gm, g);

    optim_free(&opt);
    backend_cpu.free(arena.base);
    golden_model_free(&gm);
    golden_close(g);
    return test_end();
}
