/*
 * lib_golden_model.c - builds the model of a golden file. The starting values are made from the
 * formulas in tests/golden/model/init.py; the file holds sums over them, which are compared first,
 * so that a fault there is not taken for one in the model.
 */
#include "tests/golden_model.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole tensor p in row-major order, as on one rank. */
static float *make_tensor(const struct config *cfg, const struct param *p)
{
    const uint64_t seed = (uint64_t)cfg->run.seed;
    float *x = malloc((size_t)p->n_all * sizeof *x);
    CHECK(x, "no memory for %s", p->name);
    if (p->init == INIT_NORMAL) {
        rng_fill_normal(x, rng_key(seed, p->name), 0, p->n_all, cfg->model.initializer_range);
    } else {
        char name[96];
        snprintf(name, sizeof name, "%s#gain", p->name);
        rng_fill_normal(x, rng_key(seed, name), 0, p->n_all, 0.1);
        for (int64_t i = 0; i < p->n_all; i++) x[i] += 1.0f;
    }
    return x;
}

/* Sums in F64; 1e-9 allows for another order and another libm's last digit. */
static void check_sums(const struct golden *g, const struct param *p, const float *x)
{
    char name[96];
    snprintf(name, sizeof name, "init/%s", p->name);
    double *want = golden_f64(g, name), sum = 0, sum_abs = 0;
    for (int64_t i = 0; i < p->n_all; i++) {
        sum += x[i];
        sum_abs += fabs(x[i]);
    }
    CHECK(fabs(sum - want[0]) <= 1e-9 * want[1] && fabs(sum_abs - want[1]) <= 1e-9 * want[1],
          "%s: starting values differ: sum %.12g, expected %.12g; of absolute values %.12g, "
          "expected %.12g",
          p->name, sum, want[0], sum_abs, want[1]);
    free(want);
}

static void fill_weights(struct golden_model *gm, const struct golden *g)
{
    for (int i = 0; i < gm->params.n_params; i++) {
        const struct param *p = &gm->params.param[i];
        float *x = make_tensor(&gm->cfg, p);
        check_sums(g, p, x);
        for (int64_t j = 0; j < p->n; j++) {
            const float v = x[param_global_index(p, &gm->mesh, j)];
            if (p->dtype == DTYPE_F32)
                ((float *)p->w)[j] = v;
            else
                ((bf16 *)p->w)[j] = f32_to_bf16(v);
        }
        free(x);
    }
}

static void fill_biases(struct golden_model *gm, const struct golden *g)
{
    const struct model *m = &gm->model;
    for (int l = 0; l < m->n_layers && config_experts_biased(&gm->cfg.model); l++) {
        if (m->layer[l].moe < 0) continue;
        char name[96];
        snprintf(name, sizeof name, "model.layers.%d.mlp.gate.e_score_correction_bias", l);
        float *bias = m->bias + (int64_t)m->layer[l].moe * m->E;
        rng_fill_normal(bias, rng_key((uint64_t)gm->cfg.run.seed, name), 0, m->E, 0.05);
        snprintf(name, sizeof name, "router_bias/%d", l);
        float *want = golden_f32(g, name);
        CHECK(golden_error(bias, want, m->E) < 1e-6, "%s: starting values differ", name);
        free(want);
    }
}

static void load_config(struct golden_model *gm, const struct golden *g, const char *dir, int n,
                        char *const overrides[])
{
    char path[600];
    snprintf(path, sizeof path, "%s/golden.yaml", dir);
    FILE *out = fopen(path, "w");
    CHECK(out, "cannot write %s", path);
    char *text = golden_text(g, "config");
    fputs(text, out);
    fclose(out);
    free(text);
    struct err_list errs = {0};
    CHECK(config_try_load(&gm->cfg, path, n, overrides, &errs) == 0,
          "the configuration of the golden file is refused: %s", errs.text);
}

static void arena_make(struct arena *arena, const char *name, size_t bytes)
{
    arena_init(arena, name, backend_cpu.alloc(bytes, name), bytes, false);
}

void golden_model_init(struct golden_model *gm, const struct golden *g, const char *dir, int n,
                       char *const overrides[])
{
    memset(gm, 0, sizeof *gm);
    load_config(gm, g, dir, n, overrides);
    golden_model_build(gm);
    fill_weights(gm, g);
    fill_biases(gm, g);
}

void golden_model_build(struct golden_model *gm)
{
    mesh_init(&gm->mesh, &gm->cfg);
    gm->stream = backend_cpu.stream_create(1);
    param_table_init(&gm->params, &gm->cfg, &gm->mesh);
    struct plan plan;
    plan_rank(&plan, &gm->cfg, &gm->mesh);
    arena_make(&gm->weights, "weights", plan.worst.role[ROLE_WEIGHTS]);
    arena_make(&gm->grads, "gradients", plan.worst.role[ROLE_GRADIENTS]);
    arena_make(&gm->staging, "staging", plan.worst.role[ROLE_STAGING]);
    param_table_place(&gm->params, &gm->weights, &gm->grads);
    comm_init(&gm->comm, &gm->mesh, &backend_cpu, gm->stream, &gm->staging);
    const struct model_parts parts = {.cfg = &gm->cfg,
                                      .mesh = &gm->mesh,
                                      .be = &backend_cpu,
                                      .stream = gm->stream,
                                      .comm = &gm->comm,
                                      .params = &gm->params};
    model_init(&gm->model, &parts, &plan.worst.activations);
}

void golden_model_free(struct golden_model *gm)
{
    model_free(&gm->model);
    param_table_free(&gm->params);
    backend_cpu.free(gm->staging.base);
    backend_cpu.free(gm->grads.base);
    backend_cpu.free(gm->weights.base);
    backend_cpu.stream_destroy(gm->stream);
    mesh_free(&gm->mesh);
    config_free(&gm->cfg);
}

void golden_model_forward(struct golden_model *gm, const int32_t *token, const int32_t *doc_start)
{
    struct model *m = &gm->model;
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &gm->params.bucket[i];
        if (b->n) memset(b->grad, 0, (size_t)b->n * sizeof(float));
    }
    memset(m->loss_sum, 0, sizeof(double) * (size_t)(m->n_mtp + 2));
    memset(gm->n_label, 0, sizeof gm->n_label);
    model_load(m, token, doc_start, NULL);
    model_count_labels(m, token, doc_start, NULL, gm->n_label);
    for (int k = 0; k <= m->n_mtp; k++) {
        const double weight = k ? gm->cfg.train.mtp_loss_weight / m->n_mtp : 1.0;
        m->flow.loss_scale[k] = (float)(weight / (double)gm->n_label[k]);
    }
    m->flow.balance_scale = (float)(gm->cfg.train.balance_loss_alpha / m->flow.B);
    model_forward(m, true);
}

double golden_model_stage_loss(const struct golden_model *gm, int k)
{
    return gm->model.loss_sum[k] / (double)gm->n_label[k];
}

double golden_model_balance_loss(const struct golden_model *gm)
{
    return gm->model.loss_sum[1 + gm->model.n_mtp];
}

double golden_model_loss(const struct golden_model *gm)
{
    const int n_mtp = gm->model.n_mtp;
    double loss = golden_model_stage_loss(gm, 0) + golden_model_balance_loss(gm);
    for (int k = 1; k <= n_mtp; k++)
        loss += gm->cfg.train.mtp_loss_weight / n_mtp * golden_model_stage_loss(gm, k);
    return loss;
}
