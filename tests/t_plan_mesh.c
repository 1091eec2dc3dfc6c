/* A mesh that is planned without MPI is the mesh that a job of that shape gets, on every rank. */
// TEST ranks=1,4 timeout=30
#include "test.h"
#include "topo/mesh.h"

static void check_axis(const struct mesh *planned, const struct mesh *real, enum axis axis)
{
    const struct mesh_axis *p = &planned->axis[axis], *a = &real->axis[axis];
    int size, rank;
    MPI_Comm_size(a->comm, &size);
    MPI_Comm_rank(a->comm, &rank);
    EXPECT(p->size == size && p->rank == rank, "%s: planned member %d of %d, is %d of %d",
           axis_name(axis), p->rank, p->size, rank, size);
    EXPECT(p->comm == MPI_COMM_NULL, "%s: a planned axis has a communicator", axis_name(axis));
    for (int k = 0; k < a->size && k < p->size; k++)
        EXPECT(p->world_rank[k] == a->world_rank[k] && p->same_node[k] == a->same_node[k],
               "%s: member %d planned as rank %d (same node: %d), is %d (%d)", axis_name(axis), k,
               p->world_rank[k], p->same_node[k], a->world_rank[k], a->same_node[k]);
}

/* ranks_per_node 0 asks MPI: here all ranks share a node. */
static void check_mesh(int tp, int ep, int ranks_per_node)
{
    const struct config cfg = {.topology = {tp, ep, ranks_per_node}};
    struct mesh real, planned;
    mesh_init(&real, &cfg);
    const struct mesh_shape shape = {real.size, tp, ep, ranks_per_node ? ranks_per_node : 64};
    mesh_plan(&planned, &shape, real.rank);
    EXPECT(planned.dp == real.dp && planned.tp == real.tp && planned.ep == real.ep &&
               planned.edp == real.edp,
           "planned dp %d tp %d ep %d edp %d, is %d %d %d %d", planned.dp, planned.tp, planned.ep,
           planned.edp, real.dp, real.tp, real.ep, real.edp);
    EXPECT(planned.node == real.node && planned.n_nodes == real.n_nodes &&
               planned.local_rank == real.local_rank && planned.local_size == real.local_size,
           "planned node %d of %d, rank %d of %d in it; is %d of %d, %d of %d", planned.node,
           planned.n_nodes, planned.local_rank, planned.local_size, real.node, real.n_nodes,
           real.local_rank, real.local_size);
    for (enum axis axis = 0; axis < N_AXES; axis++) check_axis(&planned, &real, axis);
    mesh_free(&planned);
    mesh_free(&real);
}

int main(int argc, char **argv)
{
    int n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    for (int tp = 1; tp <= n_ranks; tp *= 2)
        for (int ep = 1; ep <= n_ranks; ep *= 2)
            for (int per_node = 0; per_node <= n_ranks; per_node++) check_mesh(tp, ep, per_node);
    return test_end();
}
