/*
 * router.c - the route phase: norm before the feed forward, scores, choice of experts, balance
 * statistics. All of it in F32 whatever the compute dtype (report 2.1.2; Hugging Face
 * DeepseekV3TopkRouter).
 */
#include "model/exchange.h"
#include "model/model.h"

static struct router_shape router_shape(const struct model *m)
{
    const struct config_model *c = &m->cfg->model;
    enum router_group group = ROUTER_GROUP_NONE;
    if (c->topk_method == TOPK_NOAUX_TC && c->n_group > 1) group = ROUTER_GROUP_TOP2_SUM;
    if (c->topk_method == TOPK_GROUP_LIMITED_GREEDY) group = ROUTER_GROUP_MAX;
    return (struct router_shape){.N = m->flow.N,
                                 .E = m->E,
                                 .K = m->K,
                                 .score = c->scoring_func == SCORING_SIGMOID ? ROUTER_SIGMOID
                                                                             : ROUTER_SOFTMAX,
                                 .group = group,
                                 .n_group = c->n_group,
                                 .topk_group = c->topk_group,
                                 .normalise = c->norm_topk_prob,
                                 .scale = (float)c->routed_scaling_factor};
}

static struct sequence_span local_span(const struct model *m)
{
    return (struct sequence_span){.first = first_token(m), .B = m->flow.B, .T = m->flow.T};
}

static struct linear_shape gate_shape(const struct model *m)
{
    return (struct linear_shape){.N = m->flow.N, .in = m->D, .out = m->E};
}

/* x as F32: itself, or a cast copy in scratch. */
static const float *as_f32(struct model *m, const void *x, int64_t n)
{
    if (m->dt == DTYPE_F32) return x;
    float *wide = scratch(m, n, DTYPE_F32);
    RUN(m, cast, wide, DTYPE_F32, x, m->dt, n);
    return wide;
}

/* Sequence-wise balance loss (report eq. 17-20): sums over whole sequences need all tp ranks. */
static void balance_fwd(struct model *m, struct layer_acts *a, const struct router_shape *shape)
{
    const struct flow *f = &m->flow;
    const struct sequence_span span = local_span(m);
    const int64_t n = (int64_t)f->B * m->E;
    const size_t mark = arena_mark(&m->scratch);
    float *p_sum = scratch(m, n, DTYPE_F32);
    int32_t *n_top = scratch(m, n, DTYPE_I32);
    RUN(m, balance_stats, p_sum, n_top, a->score, &span, shape);
    comm_all_reduce(m->comm, AXIS_TP, p_sum, n, DTYPE_F32, REDUCE_SUM);
    comm_all_reduce(m->comm, AXIS_TP, n_top, n, DTYPE_I32, REDUCE_SUM);
    RUN(m, balance_loss, m->loss_sum + 1 + m->n_mtp, a->coef, p_sum, n_top, f->B, f->T, m->E, m->K,
        f->balance_scale);
    arena_pop(&m->scratch, mark);
}

static void route_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct router_shape shape = router_shape(m);
    const struct linear_shape gate = gate_shape(m);
    const struct norm_shape norm = hidden_norm(m);
    a->n2 = push(m, f->N * m->D, m->dt);
    a->rstd2 = push(m, f->N, DTYPE_F32);
    a->score = push(m, f->N * m->E, DTYPE_F32);
    const bool balanced = m->cfg->train.balance_loss_alpha > 0;
    a->coef = balanced ? push(m, (int64_t)f->B * m->E, DTYPE_F32) : NULL;
    a->weight = push(m, f->N * m->K, DTYPE_F32);
    a->expert = push(m, f->N * m->K, DTYPE_I32);
    a->order = push(m, f->N * m->K, DTYPE_I32);
    a->place = push(m, f->N * m->K, DTYPE_I32);
    a->count = push(m, m->E, DTYPE_I64);

    RUN(m, rmsnorm_fwd, a->n2, a->rstd2, a->h_mid, l->ffn_norm->w, m->dt, &norm);
    const size_t mark = arena_mark(&m->scratch);
    const float *x = as_f32(m, a->n2, f->N * m->D);
    float *logits = scratch(m, f->N * m->E, DTYPE_F32);
    RUN(m, linear_fwd, logits, DTYPE_F32, x, l->router->w, DTYPE_F32, &gate);
    const float *bias =
        config_experts_biased(&m->cfg->model) ? m->bias + (int64_t)l->moe * m->E : NULL;
    RUN(m, router_fwd, a->score, a->expert, a->weight, logits, bias, m->forced, &shape);
    arena_pop(&m->scratch, mark);

    RUN(m, sort_by_expert, a->order, a->place, a->count, a->expert, f->N * m->K, m->E);
    if (!f->train) return;
    RUN(m, count_add, m->expert_count + (int64_t)l->moe * m->E, a->count, m->E);
    if (balanced) balance_fwd(m, a, &shape);
}

static void route_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct router_shape shape = router_shape(m);
    const struct sequence_span span = local_span(m);
    const struct linear_shape gate = gate_shape(m);
    const struct norm_shape norm = hidden_norm(m);
    const size_t mark = arena_mark(&m->scratch);
    const float *x = as_f32(m, a->n2, f->N * m->D);
    float *dlogits = scratch(m, f->N * m->E, DTYPE_F32);
    float *dx = scratch(m, f->N * m->D, DTYPE_F32);
    RUN(m, router_bwd, dlogits, a->dweight, a->score, a->expert, a->coef, &span, &shape);
    RUN(m, linear_bwd_w, l->router->grad, dlogits, x, DTYPE_F32, &gate);
    RUN(m, linear_bwd_x, dx, dlogits, l->router->w, DTYPE_F32, &gate, false);
    RUN(m, add, a->dn2, a->dn2, m->dt, dx, DTYPE_F32, f->N * m->D);
    RUN(m, rmsnorm_bwd, f->dh, l->ffn_norm->grad, a->dn2, a->h_mid, a->rstd2, l->ffn_norm->w, m->dt,
        &norm, true);
    arena_pop(&m->scratch, mark);
}

const struct phase phase_route = {"route", PHASE_COMPUTE, route_fwd, route_bwd};
