/*
 * moe.c - the phases of a mixture-of-experts feed forward after routing (report 2.1.2): dispatch,
 * shared experts, routed experts as one grouped product per projection over their real row counts,
 * combine. Dropless. h_out = h_mid + shared + sum_k weight_k * expert_k, summed in F32, one
 * rounding.
 *
 * Buffers that only the next phase needs lie on the stack above what backward needs and are given
 * back by that phase (rows_out), or with the whole layer (backward's). Rows are the most of a
 * layer's memory: in backward each buffer's gradient takes its place.
 */
#include "model/exchange.h"
#include "model/model.h"

static struct grouped_shape up_shape(const struct model *m, const struct exchange *ex)
{
    return (struct grouped_shape){
        .n_groups = m->E_l, .offset = ex->offset, .in = m->D, .out = m->F};
}

static struct grouped_shape down_shape(const struct model *m, const struct exchange *ex)
{
    return (struct grouped_shape){
        .n_groups = m->E_l, .offset = ex->offset, .in = m->F, .out = m->D};
}

static void dispatch_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    exchange_prepare(m, &a->ex, a->count);
    a->rows_in = push(m, a->ex.M * m->D, m->dt);
    a->rows_back = push(m, sorted_rows(m) * m->D, m->dt);
    f->h = push(m, f->N * m->D, m->dt); /* h_out: the shared experts write it, combine adds to it */
    if (m->mesh->ep == 1) {             /* sorted rows are grouped rows */
        RUN(m, gather_rows, a->rows_in, a->n2, a->order, m->K, m->dt, a->ex.M, m->D);
        return;
    }
    const size_t mark = arena_mark(&m->scratch);
    void *sorted = scratch(m, sorted_rows(m) * m->D, m->dt);
    RUN(m, gather_rows, sorted, a->n2, a->order, m->K, m->dt, sorted_rows(m), m->D);
    exchange_to_experts(m, &a->ex, a->rows_in, sorted);
    arena_pop(&m->scratch, mark);
}

/* dn2 += the gradient that comes back from the experts: the sum over a token's K rows. */
static void dispatch_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    if (m->mesh->ep > 1) exchange_to_tokens(m, &a->ex, a->rows_back, a->drows);
    const void *shared = l->mlp.gate ? a->dn2 : NULL;
    RUN(m, combine_fwd, a->dn2, a->rows_back, a->place, NULL, shared, NULL, m->dt, f->N, m->K,
        m->D);
}

static void shared_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    if (l->mlp.gate) mlp_fwd(m, &l->mlp, &a->mlp, f->h, a->n2);
}

static void shared_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    a->dn2 = push(m, f->N * m->D, m->dt);
    if (l->mlp.gate) mlp_bwd(m, &l->mlp, &a->mlp, a->dn2, f->dh);
}

static void experts_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct grouped_shape up = up_shape(m, &a->ex), down = down_shape(m, &a->ex);
    const int64_t n = a->ex.M * m->F;
    a->gate = push(m, n, m->dt);
    a->up = push(m, n, m->dt);
    a->rows_out_mark = arena_mark(&m->stack);
    a->rows_out = m->mesh->ep == 1 ? a->rows_back : push(m, a->ex.M * m->D, m->dt);
    const size_t mark = arena_mark(&m->scratch);
    void *act = scratch(m, n, m->dt);
    RUN(m, grouped_fwd, a->gate, a->rows_in, l->expert_gate->w, m->dt, &up);
    RUN(m, grouped_fwd, a->up, a->rows_in, l->expert_up->w, m->dt, &up);
    RUN(m, swiglu_fwd, act, a->gate, a->up, m->dt, n);
    RUN(m, grouped_fwd, a->rows_out, act, l->expert_down->w, m->dt, &down);
    arena_pop(&m->scratch, mark);
}

static void experts_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct grouped_shape up = up_shape(m, &a->ex), down = down_shape(m, &a->ex);
    const int64_t n = a->ex.M * m->F;
    const size_t mark = arena_mark(&m->scratch);
    void *dact = scratch(m, n, m->dt), *act = dact; /* in turn */
    RUN(m, grouped_bwd_x, dact, a->drows, l->expert_down->w, m->dt, &down, false);
    RUN(m, swiglu_bwd, a->gate, a->up, act, dact, a->gate, a->up, m->dt, n);
    RUN(m, grouped_bwd_w, l->expert_down->grad, a->drows, act, m->dt, &down);
    RUN(m, grouped_bwd_w, l->expert_gate->grad, a->gate, a->rows_in, m->dt, &up);
    RUN(m, grouped_bwd_w, l->expert_up->grad, a->up, a->rows_in, m->dt, &up);
    RUN(m, grouped_bwd_x, a->drows, a->gate, l->expert_gate->w, m->dt, &up, false);
    RUN(m, grouped_bwd_x, a->drows, a->up, l->expert_up->w, m->dt, &up, true);
    arena_pop(&m->scratch, mark);
}

static void combine_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    if (m->mesh->ep > 1) exchange_to_tokens(m, &a->ex, a->rows_back, a->rows_out);
    arena_pop(&m->stack, a->rows_out_mark);
    const void *shared = l->mlp.gate ? f->h : NULL;
    RUN(m, combine_fwd, f->h, a->rows_back, a->place, a->weight, a->h_mid, shared, m->dt, f->N,
        m->K, m->D);
}

static void combine_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    a->dweight = push(m, f->N * m->K, DTYPE_F32);
    a->drows = m->mesh->ep == 1 ? a->rows_back : push(m, a->ex.M * m->D, m->dt);
    RUN(m, combine_bwd, a->rows_back, a->dweight, f->dh, a->rows_back, a->place, a->weight, m->dt,
        f->N, m->K, m->D);
    if (m->mesh->ep > 1) exchange_to_experts(m, &a->ex, a->drows, a->rows_back);
}

const struct phase phase_dispatch = {"dispatch", PHASE_EXCHANGE, dispatch_fwd, dispatch_bwd};
const struct phase phase_shared = {"shared", PHASE_COMPUTE, shared_fwd, shared_bwd};
const struct phase phase_experts = {"experts", PHASE_COMPUTE, experts_fwd, experts_bwd};
const struct phase phase_combine = {"combine", PHASE_EXCHANGE, combine_fwd, combine_bwd};
