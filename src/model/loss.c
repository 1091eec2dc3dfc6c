/*
 * loss.c - the head and the cross entropy, in chunks of tokens, vocabulary split over tp: the full
 * logits never exist. A chunk's gradient is taken at once, while its logits are there; its scale,
 * one over the step's number of labels, is known before the step starts.
 */
#include "model/model.h"

struct chunk {
    int64_t n;                        /* tokens of this rank */
    int64_t n_all;                    /* of the tp group */
    const void *x;                    /* [n_all, D] */
    const int32_t *label;             /* [n_all] */
    float *logits;                    /* [n_all, V_l] */
    float *max, *sum, *target, *loss; /* [n_all] */
};

/* A chunk takes the same places of every tp rank's part; their labels are not contiguous. */
static const int32_t *chunk_labels(struct model *m, const int32_t *label, int64_t at, int64_t n)
{
    const int tp = m->mesh->tp;
    if (tp == 1) return label + at;
    int32_t *picked = scratch(m, n * tp, DTYPE_I32);
    for (int r = 0; r < tp; r++)
        RUN(m, copy, picked + r * n, label + r * m->flow.N + at, (size_t)n * sizeof *picked);
    return picked;
}

static void chunk_fwd(struct model *m, struct chunk *c)
{
    const int col0 = first_vocab_row(m);
    const struct linear_shape head = {.N = c->n_all, .in = m->D, .out = m->V_l};
    c->logits = scratch(m, c->n_all * m->V_l, DTYPE_F32);
    c->max = scratch(m, c->n_all, DTYPE_F32);
    c->sum = scratch(m, 2 * c->n_all, DTYPE_F32);
    c->target = c->sum + c->n_all;
    c->loss = scratch(m, c->n_all, DTYPE_F32);
    RUN(m, linear_fwd, c->logits, DTYPE_F32, c->x, m->head->w, m->dt, &head);
    RUN(m, cross_entropy_max, c->max, c->logits, c->n_all, m->V_l);
    comm_all_reduce(m->comm, AXIS_TP, c->max, c->n_all, DTYPE_F32, REDUCE_MAX);
    RUN(m, cross_entropy_sum, c->sum, c->target, c->logits, c->max, c->label, c->n_all, m->V_l,
        col0);
    comm_all_reduce(m->comm, AXIS_TP, c->sum, 2 * c->n_all, DTYPE_F32, REDUCE_SUM);
}

/* dn of the chunk [n, D] and the head's gradient. */
static void chunk_bwd(struct model *m, struct chunk *c, void *dn, const void *dlogits)
{
    const struct linear_shape head = {.N = c->n_all, .in = m->D, .out = m->V_l};
    void *dx = m->mesh->tp == 1 ? dn : scratch(m, c->n_all * m->D, m->dt);
    RUN(m, linear_bwd_w, m->head->grad, dlogits, c->x, m->dt, &head);
    RUN(m, linear_bwd_x, dx, dlogits, m->head->w, m->dt, &head, false);
    comm_reduce_scatter(m->comm, AXIS_TP, dn, dx, c->n * m->D, m->dt);
}

void loss_head(struct model *m, struct flow *f, int k)
{
    const int col0 = first_vocab_row(m);
    const int64_t wanted = m->cfg->train.loss_chunk_tokens / m->mesh->tp;
    const int64_t most = wanted > 0 ? wanted : 1;
    struct stage_out *s = &f->stage[k];
    for (int64_t at = 0; at < f->N; at += most) {
        const size_t mark = arena_mark(&m->scratch);
        const int64_t n = f->N - at < most ? f->N - at : most;
        struct chunk c = {.n = n, .n_all = n * m->mesh->tp};
        c.x = gather_tp(m, &m->scratch, elem(s->n, m->dt, at * m->D), n * m->D);
        c.label = chunk_labels(m, f->label[k], at, n);
        chunk_fwd(m, &c);
        void *dlogits = NULL;
        if (f->train) dlogits = m->dt == DTYPE_F32 ? c.logits : scratch(m, c.n_all * m->V_l, m->dt);
        RUN(m, cross_entropy_loss, c.loss, dlogits, m->dt, c.logits, c.max, c.sum, c.target,
            c.label, f->loss_scale[k], c.n_all, m->V_l, col0);
        const float *mine = c.loss + n * m->mesh->axis[AXIS_TP].rank;
        RUN(m, copy, f->token_loss[k] + at, mine, (size_t)n * sizeof(float));
        if (f->train) chunk_bwd(m, &c, elem(s->dn, m->dt, at * m->D), dlogits);
        arena_pop(&m->scratch, mark);
    }
    RUN(m, sum_add, m->loss_sum + k, m->n_bad_loss, f->token_loss[k], f->N);
}
