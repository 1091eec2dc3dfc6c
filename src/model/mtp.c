/*
 * mtp.c - the input of a multi-token-prediction module (report 2.2): the previous stage's hidden
 * state and the embedding of a later token, each normed, joined (embedding first, as in the
 * released eh_proj) and projected to width D. model.mtp_hidden says which hidden state: after or
 * before the previous stage's norm.
 */
#include "model/model.h"

static struct norm_shape joined_norm(const struct model *m)
{
    struct norm_shape shape = hidden_norm(m);
    shape.y_stride = 2 * m->D;
    return shape;
}

static struct linear_shape join_shape(const struct model *m)
{
    return (struct linear_shape){.N = m->flow.N, .in = 2 * m->D, .out = m->D};
}

static bool feeds_on_normed(const struct model *m)
{
    return m->cfg->model.mtp_hidden == MTP_HIDDEN_NORMED;
}

static void mtp_input_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct norm_shape norm = joined_norm(m);
    const struct linear_shape join = join_shape(m);
    const struct stage_out *before = &f->stage[l->mtp - 1];
    a->hidden = feeds_on_normed(m) ? before->n : before->h;
    a->embedded = push(m, f->N * m->D, m->dt);
    a->joined = push(m, f->N * 2 * m->D, m->dt);
    a->rstd_e = push(m, f->N, DTYPE_F32);
    a->rstd_h = push(m, f->N, DTYPE_F32);
    void *h = push(m, f->N * m->D, m->dt);
    embed_fwd(m, a->embedded, f->input[l->mtp]);
    RUN(m, rmsnorm_fwd, a->joined, a->rstd_e, a->embedded, l->enorm->w, m->dt, &norm);
    RUN(m, rmsnorm_fwd, elem(a->joined, m->dt, m->D), a->rstd_h, a->hidden, l->hnorm->w, m->dt,
        &norm);
    RUN(m, linear_fwd, h, m->dt, a->joined, l->eh_proj->w, m->dt, &join);
    f->h = h;
}

/* Turns dh, the gradient by this module's input, into the gradient by the previous stage's h: fully
 * when that is what it fed on, otherwise by way of the previous stage's dn. */
static void mtp_input_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct norm_shape norm = joined_norm(m);
    const struct linear_shape join = join_shape(m);
    const size_t mark = arena_mark(&m->scratch);
    void *djoined = scratch(m, f->N * 2 * m->D, m->dt);
    void *dembedded = scratch(m, f->N * m->D, m->dt);
    RUN(m, linear_bwd_w, l->eh_proj->grad, f->dh, a->joined, m->dt, &join);
    RUN(m, linear_bwd_x, djoined, f->dh, l->eh_proj->w, m->dt, &join, false);
    RUN(m, rmsnorm_bwd, dembedded, l->enorm->grad, djoined, a->embedded, a->rstd_e, l->enorm->w,
        m->dt, &norm, false);
    embed_bwd(m, dembedded, f->input[l->mtp]);
    const bool normed = feeds_on_normed(m);
    void *dhidden = normed ? f->stage[l->mtp - 1].dn : f->dh;
    RUN(m, rmsnorm_bwd, dhidden, l->hnorm->grad, elem(djoined, m->dt, m->D), a->hidden, a->rstd_h,
        l->hnorm->w, m->dt, &norm, normed);
    if (normed) RUN(m, zero, f->dh, (size_t)(f->N * m->D) * dtype_bytes(m->dt));
    arena_pop(&m->scratch, mark);
}

const struct phase phase_mtp_input = {"mtp_input", PHASE_COMPUTE, mtp_input_fwd, mtp_input_bwd};
