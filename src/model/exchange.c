/* exchange.c - the flat expert exchange; see exchange.h. */
#include "model/exchange.h"

#include "base/err.h"
#include "base/mem.h"

void exchange_expect(struct model *m, bool worst)
{
    struct exchange *ex = &m->expected;
    const size_t bytes = sizeof(int64_t) * (size_t)m->mesh->ep;
    ex->send_rows = mem_alloc(bytes, "planned rows");
    ex->recv_rows = mem_alloc(bytes, "planned rows");
    balanced_rows(m->cfg, m->mesh, ex->send_rows, ex->recv_rows);
    const int fan_in = m->K < m->E_l ? m->K : m->E_l;
    for (int r = 0; r < m->mesh->ep; r++) {
        if (worst) ex->recv_rows[r] = m->flow.N * fan_in;
        ex->M += ex->recv_rows[r];
    }
}

/* from[j]: the received row that is grouped row j. Received: by source, then by expert. */
static void index_rows(struct model *m, struct exchange *ex, const int64_t *recv_count,
                       int64_t *next)
{
    const int ep = m->mesh->ep, E_l = m->E_l;
    for (int e = 0; e < E_l; e++) next[e] = ex->offset[e];
    int64_t row = 0;
    for (int r = 0; r < ep; r++)
        for (int e = 0; e < E_l; e++)
            for (int64_t i = 0; i < recv_count[r * E_l + e]; i++, row++) {
                ex->from[next[e]] = (int32_t)row;
                ex->to[row] = (int32_t)next[e]++;
            }
}

static void sum_counts(const struct model *m, struct exchange *ex, const int64_t *send_count,
                       const int64_t *recv_count)
{
    const int ep = m->mesh->ep, E_l = m->E_l;
    for (int e = 0; e <= E_l; e++) ex->offset[e] = 0;
    for (int r = 0; r < ep; r++) {
        ex->send_rows[r] = ex->recv_rows[r] = 0;
        for (int e = 0; e < E_l; e++) {
            ex->send_rows[r] += send_count[r * E_l + e];
            ex->recv_rows[r] += recv_count[r * E_l + e];
            ex->offset[e + 1] += recv_count[r * E_l + e];
        }
    }
    for (int e = 0; e < E_l; e++) ex->offset[e + 1] += ex->offset[e];
    ex->M = ex->offset[E_l];
    CHECK(ex->M <= INT32_MAX, "%lld rows for one rank's experts, at most %d", (long long)ex->M,
          INT32_MAX);
}

void exchange_prepare(struct model *m, struct exchange *ex, const int64_t *count)
{
    const int ep = m->mesh->ep, E = m->E;
    ex->send_rows = push(m, ep, DTYPE_I64);
    ex->recv_rows = push(m, ep, DTYPE_I64);
    ex->offset = push(m, m->E_l + 1, DTYPE_I64);
    const size_t mark = arena_mark(&m->scratch);
    int64_t *recv_count = scratch(m, E, DTYPE_I64), *next = scratch(m, m->E_l, DTYPE_I64);
    comm_all_to_all(m->comm, AXIS_EP, recv_count, count, m->E_l, DTYPE_I64);
    RUN(m, stream_sync); /* the host needs the counts: once a layer */
    if (m->be) {
        sum_counts(m, ex, count, recv_count);
    } else {
        ex->send_rows = m->expected.send_rows;
        ex->recv_rows = m->expected.recv_rows;
        ex->M = m->expected.M;
    }
    ex->from = ex->to = NULL;
    if (ep > 1) {
        ex->from = push(m, ex->M, DTYPE_I32);
        ex->to = push(m, ex->M, DTYPE_I32);
        if (m->be) index_rows(m, ex, recv_count, next);
    }
    arena_pop(&m->scratch, mark);
}

void exchange_to_experts(struct model *m, const struct exchange *ex, void *grouped,
                         const void *sorted)
{
    const size_t mark = arena_mark(&m->scratch);
    const size_t row_bytes = (size_t)m->D * dtype_bytes(m->dt);
    void *received = scratch(m, ex->M * m->D, m->dt);
    comm_all_to_all_rows(m->comm, AXIS_EP, received, ex->recv_rows, sorted, ex->send_rows,
                         row_bytes);
    RUN(m, gather_rows, grouped, received, ex->from, 1, m->dt, ex->M, m->D);
    arena_pop(&m->scratch, mark);
}

void exchange_to_tokens(struct model *m, const struct exchange *ex, void *sorted,
                        const void *grouped)
{
    const size_t mark = arena_mark(&m->scratch);
    const size_t row_bytes = (size_t)m->D * dtype_bytes(m->dt);
    void *to_send = scratch(m, ex->M * m->D, m->dt);
    RUN(m, gather_rows, to_send, grouped, ex->to, 1, m->dt, ex->M, m->D);
    comm_all_to_all_rows(m->comm, AXIS_EP, sorted, ex->send_rows, to_send, ex->recv_rows,
                         row_bytes);
    arena_pop(&m->scratch, mark);
}
