/*
 * mlp.c - SwiGLU MLP: down(silu(gate x) * up x), for dense layers and the shared experts. Its width
 * is split over tp: tokens are gathered before and summed and scattered after.
 */
#include "model/model.h"

static struct linear_shape up_shape(const struct model *m, const struct mlp_params *p)
{
    return (struct linear_shape){.N = m->flow.Na, .in = m->D, .out = p->F / m->mesh->tp};
}

static struct linear_shape down_shape(const struct model *m, const struct mlp_params *p)
{
    return (struct linear_shape){.N = m->flow.Na, .in = p->F / m->mesh->tp, .out = m->D};
}

void mlp_fwd(struct model *m, const struct mlp_params *p, struct mlp_acts *acts, void *out,
             const void *x)
{
    const struct flow *f = &m->flow;
    const struct linear_shape up = up_shape(m, p), down = down_shape(m, p);
    const int64_t n = f->Na * up.out;
    acts->x_all = gather_tp(m, &m->stack, x, f->N * m->D);
    acts->gate = push(m, n, m->dt);
    acts->up = push(m, n, m->dt);
    const size_t mark = arena_mark(&m->scratch);
    void *act = scratch(m, n, m->dt);
    void *partial = m->mesh->tp == 1 ? out : scratch(m, f->Na * m->D, m->dt);
    RUN(m, linear_fwd, acts->gate, m->dt, acts->x_all, p->gate->w, m->dt, &up);
    RUN(m, linear_fwd, acts->up, m->dt, acts->x_all, p->up->w, m->dt, &up);
    RUN(m, swiglu_fwd, act, acts->gate, acts->up, m->dt, n);
    RUN(m, linear_fwd, partial, m->dt, act, p->down->w, m->dt, &down);
    comm_reduce_scatter(m->comm, AXIS_TP, out, partial, f->N * m->D, m->dt);
    arena_pop(&m->scratch, mark);
}

void mlp_bwd(struct model *m, const struct mlp_params *p, struct mlp_acts *acts, void *dx,
             const void *dy)
{
    const struct flow *f = &m->flow;
    const struct linear_shape up = up_shape(m, p), down = down_shape(m, p);
    const int64_t n = f->Na * up.out;
    const size_t mark = arena_mark(&m->scratch);
    const void *dy_all = gather_tp(m, &m->scratch, dy, f->N * m->D);
    void *dact = scratch(m, n, m->dt), *act = dact; /* in turn */
    void *dx_all = m->mesh->tp == 1 ? dx : scratch(m, f->Na * m->D, m->dt);
    RUN(m, linear_bwd_x, dact, dy_all, p->down->w, m->dt, &down, false);
    RUN(m, swiglu_bwd, acts->gate, acts->up, act, dact, acts->gate, acts->up, m->dt, n);
    RUN(m, linear_bwd_w, p->down->grad, dy_all, act, m->dt, &down);
    RUN(m, linear_bwd_w, p->gate->grad, acts->gate, acts->x_all, m->dt, &up);
    RUN(m, linear_bwd_w, p->up->grad, acts->up, acts->x_all, m->dt, &up);
    RUN(m, linear_bwd_x, dx_all, acts->gate, p->gate->w, m->dt, &up, false);
    RUN(m, linear_bwd_x, dx_all, acts->up, p->up->w, m->dt, &up, true);
    comm_reduce_scatter(m->comm, AXIS_TP, dx, dx_all, f->N * m->D, m->dt);
    arena_pop(&m->scratch, mark);
}

/* The dense layer's feed forward: h_out = h_mid + mlp(norm(h_mid)). */
static void dense_fwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const int64_t n = f->N * m->D;
    const struct norm_shape norm = hidden_norm(m);
    a->n2 = push(m, n, m->dt);
    a->rstd2 = push(m, f->N, DTYPE_F32);
    void *h_out = push(m, n, m->dt);
    RUN(m, rmsnorm_fwd, a->n2, a->rstd2, a->h_mid, l->ffn_norm->w, m->dt, &norm);
    mlp_fwd(m, &l->mlp, &a->mlp, h_out, a->n2);
    RUN(m, add, h_out, a->h_mid, m->dt, h_out, m->dt, n);
    f->h = h_out;
}

static void dense_bwd(struct model *m, struct layer *l, struct flow *f)
{
    struct layer_acts *a = &f->acts[l->index];
    const struct norm_shape norm = hidden_norm(m);
    const size_t mark = arena_mark(&m->scratch);
    void *dn2 = scratch(m, f->N * m->D, m->dt);
    mlp_bwd(m, &l->mlp, &a->mlp, dn2, f->dh);
    RUN(m, rmsnorm_bwd, f->dh, l->ffn_norm->grad, dn2, a->h_mid, a->rstd2, l->ffn_norm->w, m->dt,
        &norm, true);
    arena_pop(&m->scratch, mark);
}

const struct phase phase_mlp = {"mlp", PHASE_COMPUTE, dense_fwd, dense_bwd};
