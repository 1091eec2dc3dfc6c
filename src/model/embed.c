/*
 * embed.c - token embedding, vocabulary split over tp. Every tp rank looks up the rows it owns for
 * all tokens of the group; exactly one rank has each row, so the sum over tp is exact.
 */
#include "model/model.h"

void embed_fwd(struct model *m, void *x, const int32_t *id)
{
    const struct flow *f = &m->flow;
    const int row0 = first_vocab_row(m);
    const size_t mark = arena_mark(&m->scratch);
    void *all = m->mesh->tp == 1 ? x : scratch(m, f->Na * m->D, m->dt);
    RUN(m, embedding_fwd, all, m->embed->w, id, m->dt, f->Na, m->D, row0, m->V_l);
    comm_reduce_scatter(m->comm, AXIS_TP, x, all, f->N * m->D, m->dt);
    arena_pop(&m->scratch, mark);
}

void embed_bwd(struct model *m, const void *dx, const int32_t *id)
{
    const struct flow *f = &m->flow;
    const int row0 = first_vocab_row(m);
    const size_t mark = arena_mark(&m->scratch);
    const void *all = gather_tp(m, &m->scratch, dx, f->N * m->D);
    RUN(m, embedding_bwd, m->embed->grad, all, id, m->dt, f->Na, m->D, row0, m->V_l);
    arena_pop(&m->scratch, mark);
}
