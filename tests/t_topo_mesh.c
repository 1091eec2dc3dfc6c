/* Every rank sits where mesh.h says: coordinates, members of each axis, nodes (by shared memory or
 * by topology.ranks_per_node, never by host names). Texts of any length reach all ranks. */
// TEST ranks=1,4 timeout=30
#include "test.h"
#include "topo/mesh.h"

#include <string.h>

/* The k-th member of the axis of which the rank is one. */
static int member(const struct mesh *m, enum axis axis, int k)
{
    switch (axis) {
    case AXIS_DP: return k * m->tp + m->rank % m->tp;
    case AXIS_TP: return m->rank / m->tp * m->tp + k;
    case AXIS_EP: return m->rank / m->ep * m->ep + k;
    case AXIS_EDP: return k * m->ep + m->rank % m->ep;
    default: return k;
    }
}

static void check_axes(const struct mesh *m, const int *node_of)
{
    const int size[N_AXES] = {m->size, m->size / m->tp, m->tp, m->ep, m->size / m->ep};
    for (enum axis axis = 0; axis < N_AXES; axis++) {
        const struct mesh_axis *a = &m->axis[axis];
        EXPECT(a->size == size[axis], "%s has %d members, expected %d", axis_name(axis), a->size,
               size[axis]);
        EXPECT(a->world_rank[a->rank] == m->rank, "%s: member %d is rank %d", axis_name(axis),
               a->rank, a->world_rank[a->rank]);
        for (int k = 0; k < a->size; k++) {
            EXPECT(a->world_rank[k] == member(m, axis, k), "%s: member %d is rank %d, expected %d",
                   axis_name(axis), k, a->world_rank[k], member(m, axis, k));
            EXPECT(a->same_node[k] == (node_of[a->world_rank[k]] == node_of[m->rank]),
                   "%s: member %d on this node: %d", axis_name(axis), k, a->same_node[k]);
        }
    }
}

static void check_mesh(int tp, int ep, int ranks_per_node)
{
    const struct config cfg = {.topology = {tp, ep, ranks_per_node}};
    struct mesh m;
    mesh_init(&m, &cfg);
    int node_of[64], n_local = 0, before = 0;
    for (int r = 0; r < m.size; r++) node_of[r] = ranks_per_node ? r / ranks_per_node : 0;
    for (int r = 0; r < m.size; r++) {
        n_local += node_of[r] == node_of[m.rank];
        before += node_of[r] == node_of[m.rank] && r < m.rank;
    }
    EXPECT(m.dp == m.size / tp && m.tp == tp && m.ep == ep && m.edp == m.size / ep,
           "dp %d tp %d ep %d edp %d", m.dp, m.tp, m.ep, m.edp);
    EXPECT(m.node == node_of[m.rank] && m.n_nodes == node_of[m.size - 1] + 1,
           "node %d of %d, expected %d of %d", m.node, m.n_nodes, node_of[m.rank],
           node_of[m.size - 1] + 1);
    EXPECT(m.local_rank == before && m.local_size == n_local,
           "local rank %d of %d, expected %d of %d", m.local_rank, m.local_size, before, n_local);
    check_axes(&m, node_of);
    /* All ranks are on this machine, also those that play other nodes. */
    EXPECT(m.machine_ranks == m.size, "%d ranks on this machine", m.machine_ranks);
    EXPECT(m.core_sharers >= 1 && m.core_sharers <= m.size, "%d sharers", m.core_sharers);
    mesh_free(&m);
}

/* Asked for by the environment or the configuration, which goes first; never more than the cores.
 */
static void check_threads(void)
{
    struct config cfg = {.topology = {1, 1, 0}};
    struct mesh m;
    mesh_init(&m, &cfg);
    const int share = mesh_cores() / m.core_sharers, most = share > 1 ? share : 1;
    const struct {
        const char *env;
        int asked, want;
    } cases[] = {{NULL, 0, most},
                 {"1", 0, 1},
                 {"9999", 0, most},
                 {"9999", 1, 1},
                 {"1", 2, most < 2 ? most : 2},
                 {"1", 4096, most}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsetenv("OMP_NUM_THREADS");
        if (cases[i].env) setenv("OMP_NUM_THREADS", cases[i].env, 1);
        cfg.run.threads = cases[i].asked;
        EXPECT(mesh_threads(&m, &cfg) == cases[i].want,
               "OMP_NUM_THREADS=%s, run.threads %d, %d cores of %d ranks: %d threads, expected %d",
               cases[i].env ? cases[i].env : "", cases[i].asked, mesh_cores(), m.core_sharers,
               mesh_threads(&m, &cfg), cases[i].want);
    }
    mesh_free(&m);
}

static void check_text(size_t n)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *text = NULL, *want = calloc(1, n + 1);
    for (size_t i = 0; i < n; i++) want[i] = (char)('a' + i % 23);
    if (rank == 0) text = want; /* the others have nothing to give */
    char *got = mesh_broadcast_text(text);
    EXPECT(strlen(got) == n && !memcmp(got, want, n), "%zu bytes became %zu", n, strlen(got));
    free(got);
    free(want);
}

int main(int argc, char **argv)
{
    int n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    check_mesh(1, 1, 0);
    check_threads();
    check_text(0);
    check_text(300000);
    if (n_ranks == 4) {
        for (int tp = 1; tp <= 4; tp *= 2)
            for (int ep = 1; ep <= 4; ep *= 2) check_mesh(tp, ep, 0);
        check_mesh(2, 4, 2);
        check_mesh(1, 2, 1);
        check_mesh(2, 2, 3); /* the last node is smaller */
    }
    return test_end();
}
