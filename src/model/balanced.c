/*
 * balanced.c - routing that gives all experts the same number of rows, up to one: the (token,
 * choice) pairs of a micro-batch, numbered token * K + choice, go to experts number mod E. This is
 * what debug.balanced_routing forces and what a plan counts with.
 */
#include "model/model.h"

void balanced_experts(const struct model *m, int32_t *expert)
{
    const int64_t first = first_token(m) * m->K;
    for (int64_t i = 0; i < sorted_rows(m); i++) expert[i] = (int32_t)((first + i) % m->E);
}

/* How many of the pairs 0 .. n - 1 of a micro-batch go to experts below e, of E. */
static int64_t pairs_below(int64_t n, int e, int E)
{
    const int64_t rest = n % E;
    return n / E * e + (rest < e ? rest : e);
}

/* Rows that the tokens of tp rank t send to the experts of ep rank r. */
static int64_t rows_between(const struct config *cfg, const struct mesh *mesh, int t, int r)
{
    const int E = cfg->model.n_routed_experts, E_l = E / mesh->ep;
    const int64_t n_all = (int64_t)cfg->train.micro_batch * cfg->data.sequence_length;
    const int64_t n = n_all / mesh->tp * cfg->model.num_experts_per_tok, first = n * t;
    const int64_t below_last =
        pairs_below(first + n, (r + 1) * E_l, E) - pairs_below(first, (r + 1) * E_l, E);
    return below_last - (pairs_below(first + n, r * E_l, E) - pairs_below(first, r * E_l, E));
}

void balanced_rows(const struct config *cfg, const struct mesh *mesh, int64_t *send_rows,
                   int64_t *recv_rows)
{
    const struct mesh_axis *ep = &mesh->axis[AXIS_EP];
    for (int r = 0; r < ep->size; r++) {
        send_rows[r] = rows_between(cfg, mesh, mesh->axis[AXIS_TP].rank, r);
        recv_rows[r] = rows_between(cfg, mesh, ep->world_rank[r] % mesh->tp, ep->rank);
    }
}
