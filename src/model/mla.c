/*
 * mla.c - multi-head latent attention (report 2.1.1) with its pre-norm and residual. The down-
 * projections run on this rank's tokens; only the latents (R values a token) are gathered over tp,
 * then every tp rank attends with its own heads over whole sequences. Without q_lora_rank the
 * queries need the normed hidden state itself, which is then gathered too.
 */
#include "model/model.h"

/* The latents of a token lie side by side: columns of the [., R] buffers. */
static void *col_kv(const struct model *m, void *latents)
{
    return elem(latents, m->dt, m->r_q);
}
static void *col_pe(const struct model *m, void *latents)
{
    return elem(latents, m->dt, m->r_q + m->r_kv);
}

static struct norm_shape latent_norm(const struct model *m, int width)
{
    return (struct norm_shape){.N = m->flow.N,
                               .D = width,
                               .x_stride = m->R,
                               .y_stride = m->R,
                               .eps = (float)m->cfg->model.latent_norm_eps};
}

static struct linear_shape shape_q_a(const struct model *m)
{
    return (struct linear_shape){.N = m->flow.N, .in = m->D, .out = m->r_q, .y_stride = m->R};
}

static struct linear_shape shape_kv_a(const struct model *m)
{
    return (struct linear_shape){
        .N = m->flow.N, .in = m->D, .out = m->r_kv + m->d_rope, .y_stride = m->R};
}

static struct linear_shape shape_q_b(const struct model *m)
{
    const int out = m->H_l * (m->d_nope + m->d_rope);
    if (!m->r_q) return (struct linear_shape){.N = m->flow.Na, .in = m->D, .out = out};
    return (struct linear_shape){.N = m->flow.Na, .in = m->r_q, .out = out, .x_stride = m->R};
}

static struct linear_shape shape_kv_b(const struct model *m)
{
    return (struct linear_shape){
        .N = m->flow.Na, .in = m->r_kv, .x_stride = m->R, .out = m->H_l * (m->d_nope + m->d_v)};
}

static struct linear_shape shape_o(const struct model *m)
{
    return (struct linear_shape){.N = m->flow.Na, .in = m->H_l * m->d_v, .out = m->D};
}

static struct rope_shape rope_q(const struct model *m)
{
    const int d_qk = m->d_nope + m->d_rope;
    return (struct rope_shape){.N = m->flow.Na,
                               .heads = m->H_l,
                               .d_rope = m->d_rope,
                               .row_stride = (int64_t)m->H_l * d_qk,
                               .head_stride = d_qk,
                               .offset = m->d_nope};
}

static struct rope_shape rope_k(const struct model *m)
{
    return (struct rope_shape){.N = m->flow.N,
                               .heads = 1,
                               .d_rope = m->d_rope,
                               .row_stride = m->R,
                               .head_stride = m->d_rope,
                               .offset = m->r_q + m->r_kv};
}

static struct attention_shape core_shape(const struct model *m)
{
    return (struct attention_shape){.B = m->flow.B,
                                    .T = m->flow.T,
                                    .H = m->H_l,
                                    .d_nope = m->d_nope,
                                    .d_rope = m->d_rope,
                                    .d_v = m->d_v,
                                    .k_pe_stride = m->R,
                                    .scale = m->softmax_scale};
}

/* h -> norm -> raw latents -> normed and rotated latents of all tokens of the tp group. */
static void latents_fwd(struct model *m, const struct attention_params *p, struct layer_acts *a)
{
    const struct flow *f = &m->flow;
    const struct norm_shape norm = hidden_norm(m), norm_q = latent_norm(m, m->r_q),
                            norm_kv = latent_norm(m, m->r_kv);
    const struct linear_shape q_a = shape_q_a(m), kv_a = shape_kv_a(m);
    const struct rope_shape rope = rope_k(m);
    RUN(m, rmsnorm_fwd, a->n1, a->rstd1, a->h_in, p->norm->w, m->dt, &norm);
    void *mine = elem(a->latent_all, m->dt, first_token(m) * m->R);
    if (p->q_a) {
        RUN(m, linear_fwd, a->raw, m->dt, a->n1, p->q_a->w, m->dt, &q_a);
        RUN(m, rmsnorm_fwd, mine, a->rstd_q, a->raw, p->q_norm->w, m->dt, &norm_q);
    }
    RUN(m, linear_fwd, col_kv(m, a->raw), m->dt, a->n1, p->kv_a->w, m->dt, &kv_a);
    RUN(m, rmsnorm_fwd, col_kv(m, mine), a->rstd_kv, col_kv(m, a->raw), p->kv_norm->w, m->dt,
        &norm_kv);
    RUN(m, copy_rows, col_pe(m, mine), m->R, col_pe(m, a->raw), m->R, m->dt, f->N, m->d_rope);
    RUN(m, rope, mine, m->dt, m->rope_table, first_position(m) + first_token(m), positions(m),
        &rope, false);
    comm_all_gather(m->comm, AXIS_TP, a->latent_all, mine, f->N * m->R, m->dt);
}

static void attention_push(struct model *m, struct layer_acts *a)
{
    const struct flow *f = &m->flow;
    const int d_qk = m->d_nope + m->d_rope;
    a->n1 = push(m, f->N * m->D, m->dt);
    a->raw = push(m, f->N * m->R, m->dt);
    a->latent_all = push(m, f->Na * m->R, m->dt);
    a->rstd1 = push(m, f->N, DTYPE_F32);
    a->rstd_q = push(m, f->N, DTYPE_F32);
    a->rstd_kv = push(m, f->N, DTYPE_F32);
    a->q = push(m, f->Na * m->H_l * d_qk, m->dt);
    a->kv = push(m, f->Na * m->H_l * (m->d_nope + m->d_v), m->dt);
    a->out = push(m, f->Na * m->H_l * m->d_v, m->dt);
    a->lse = push(m, f->Na * m->H_l, DTYPE_F32);
    a->h_mid = push(m, f->N * m->D, m->dt);
}

static void attention_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct attention_params *p = &l->attention;
    const struct linear_shape q_b = shape_q_b(m), kv_b = shape_kv_b(m), o = shape_o(m);
    const struct rope_shape rope = rope_q(m);
    const struct attention_shape core = core_shape(m);
    a->h_in = f->h;
    attention_push(m, a);
    latents_fwd(m, p, a);
    if (!p->q_a) a->n1_all = gather_tp(m, &m->stack, a->n1, f->N * m->D);
    RUN(m, linear_fwd, a->q, m->dt, p->q_a ? a->latent_all : a->n1_all, p->q_b->w, m->dt, &q_b);
    RUN(m, rope, a->q, m->dt, m->rope_table, first_position(m), positions(m), &rope, false);
    if (m->cache.on) {
        decode_core(m, l, a);
    } else {
        RUN(m, linear_fwd, a->kv, m->dt, col_kv(m, a->latent_all), p->kv_b->w, m->dt, &kv_b);
        RUN(m, attention_fwd, a->out, a->lse, a->q, a->kv, col_pe(m, a->latent_all), f->doc_start,
            m->dt, &core);
    }

    const size_t mark = arena_mark(&m->scratch);
    void *partial = m->mesh->tp == 1 ? a->h_mid : scratch(m, f->Na * m->D, m->dt);
    RUN(m, linear_fwd, partial, m->dt, a->out, p->o->w, m->dt, &o);
    comm_reduce_scatter(m->comm, AXIS_TP, a->h_mid, partial, f->N * m->D, m->dt);
    RUN(m, add, a->h_mid, a->h_in, m->dt, a->h_mid, m->dt, f->N * m->D);
    arena_pop(&m->scratch, mark);
    f->h = a->h_mid;
}

/* dlat [N, R], gradient by the normed latents -> dn1 [N, D], added to what is there already when
 * the queries came straight from n1. */
static void latents_bwd(struct model *m, const struct attention_params *p, struct layer_acts *a,
                        void *dn1, void *dlat)
{
    const struct flow *f = &m->flow;
    const struct norm_shape norm_q = latent_norm(m, m->r_q), norm_kv = latent_norm(m, m->r_kv);
    const struct linear_shape q_a = shape_q_a(m), kv_a = shape_kv_a(m);
    const struct rope_shape rope = rope_k(m);
    void *draw = scratch(m, f->N * m->R, m->dt);
    RUN(m, rope, dlat, m->dt, m->rope_table, first_token(m), f->T, &rope, true);
    RUN(m, copy_rows, col_pe(m, draw), m->R, col_pe(m, dlat), m->R, m->dt, f->N, m->d_rope);
    RUN(m, rmsnorm_bwd, col_kv(m, draw), p->kv_norm->grad, col_kv(m, dlat), col_kv(m, a->raw),
        a->rstd_kv, p->kv_norm->w, m->dt, &norm_kv, false);
    RUN(m, linear_bwd_w, p->kv_a->grad, col_kv(m, draw), a->n1, m->dt, &kv_a);
    RUN(m, linear_bwd_x, dn1, col_kv(m, draw), p->kv_a->w, m->dt, &kv_a, !p->q_a);
    if (!p->q_a) return;
    RUN(m, rmsnorm_bwd, draw, p->q_norm->grad, dlat, a->raw, a->rstd_q, p->q_norm->w, m->dt,
        &norm_q, false);
    RUN(m, linear_bwd_w, p->q_a->grad, draw, a->n1, m->dt, &q_a);
    RUN(m, linear_bwd_x, dn1, draw, p->q_a->w, m->dt, &q_a, true);
}

/* dq, dkv and dk_pe from dh: through the output projection and the attention core. */
static void core_bwd(struct model *m, const struct attention_params *p, struct layer_acts *a,
                     void *dq, void *dkv, void *dlat_all)
{
    const struct flow *f = &m->flow;
    const struct linear_shape o = shape_o(m);
    const struct rope_shape rope = rope_q(m);
    const struct attention_shape core = core_shape(m);
    const void *dy_all = gather_tp(m, &m->scratch, f->dh, f->N * m->D);
    void *dout = scratch(m, f->Na * o.in, m->dt);
    RUN(m, linear_bwd_x, dout, dy_all, p->o->w, m->dt, &o, false);
    RUN(m, linear_bwd_w, p->o->grad, dy_all, a->out, m->dt, &o);
    RUN(m, attention_bwd, dq, dkv, col_pe(m, dlat_all), dout, a->out, a->lse, a->q, a->kv,
        col_pe(m, a->latent_all), f->doc_start, m->dt, &core);
    RUN(m, rope, dq, m->dt, m->rope_table, 0, f->T, &rope, true);
}

static void attention_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct attention_params *p = &l->attention;
    const struct linear_shape q_b = shape_q_b(m), kv_b = shape_kv_b(m);
    const struct norm_shape norm = hidden_norm(m);
    const bool alone = m->mesh->tp == 1;
    const size_t mark = arena_mark(&m->scratch);
    void *dn1 = scratch(m, f->N * m->D, m->dt);
    void *dlat_all = scratch(m, f->Na * m->R, m->dt);
    void *dlat = alone ? dlat_all : scratch(m, f->N * m->R, m->dt);
    void *dq = scratch(m, f->Na * q_b.out, m->dt), *dkv = scratch(m, f->Na * kv_b.out, m->dt);
    core_bwd(m, p, a, dq, dkv, dlat_all);

    RUN(m, linear_bwd_w, p->kv_b->grad, dkv, col_kv(m, a->latent_all), m->dt, &kv_b);
    RUN(m, linear_bwd_x, col_kv(m, dlat_all), dkv, p->kv_b->w, m->dt, &kv_b, false);
    RUN(m, linear_bwd_w, p->q_b->grad, dq, p->q_a ? a->latent_all : a->n1_all, m->dt, &q_b);
    if (p->q_a) {
        RUN(m, linear_bwd_x, dlat_all, dq, p->q_b->w, m->dt, &q_b, false);
    } else {
        void *dn1_all = alone ? dn1 : scratch(m, f->Na * m->D, m->dt);
        RUN(m, linear_bwd_x, dn1_all, dq, p->q_b->w, m->dt, &q_b, false);
        comm_reduce_scatter(m->comm, AXIS_TP, dn1, dn1_all, f->N * m->D, m->dt);
    }
    comm_reduce_scatter(m->comm, AXIS_TP, dlat, dlat_all, f->N * m->R, m->dt);
    latents_bwd(m, p, a, dn1, dlat);
    RUN(m, rmsnorm_bwd, f->dh, p->norm->grad, dn1, a->h_in, a->rstd1, p->norm->w, m->dt, &norm,
        true);
    arena_pop(&m->scratch, mark);
}

const struct phase phase_attention = {"attention", PHASE_COMPUTE, attention_fwd, attention_bwd};
