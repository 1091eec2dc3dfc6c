/* nodes.c - where the launcher has put the ranks; see mesh_print_nodes in mesh.h. */
#include "base/err.h"
#include "topo/mesh.h"

#include <stdlib.h>

/* On how many nodes the n ranks from first on are. */
static int n_nodes_of(const struct mesh *mesh, int first, int n)
{
    int count = 0;
    for (int r = first; r < first + n; r++) {
        bool seen = false;
        for (int s = first; s < r && !seen; s++) seen = mesh->node_of[s] == mesh->node_of[r];
        count += !seen;
    }
    return count;
}

/* Groups of tp and ep are consecutive ranks: any order but node after node tears them apart. */
static void print_spread(const struct mesh *mesh, FILE *out, enum axis axis, int largest_node)
{
    const int size = mesh->axis[axis].size;
    const int needed = (size + largest_node - 1) / largest_node;
    for (int first = 0; first < mesh->size; first += size) {
        const int n = n_nodes_of(mesh, first, size);
        if (n <= needed) continue;
        fprintf(out,
                "warning %s %d: ranks %d to %d are on %d nodes, %d would do: the launcher deals "
                "ranks to the nodes round-robin? Node after node (mpirun --map-by slot, srun "
                "--distribution=block) is faster\n",
                axis_name(axis), size, first, first + size - 1, n, needed);
        return;
    }
}

/* "0-3,8" */
static void print_ranks(const struct mesh *mesh, FILE *out, int node)
{
    const char *before = "";
    for (int r = 0; r < mesh->size; r++) {
        if (mesh->node_of[r] != node) continue;
        const int first = r;
        while (r + 1 < mesh->size && mesh->node_of[r + 1] == node) r++;
        fprintf(out, "%s%d", before, first);
        if (r > first) fprintf(out, "-%d", r);
        before = ",";
    }
}

void mesh_print_nodes(const struct mesh *mesh, FILE *out, bool table)
{
    int *n_ranks = calloc((size_t)mesh->n_nodes, sizeof *n_ranks), largest = 1;
    CHECK(n_ranks, "no memory for %d nodes", mesh->n_nodes);
    for (int r = 0; r < mesh->size; r++)
        if (++n_ranks[mesh->node_of[r]] > largest) largest = n_ranks[mesh->node_of[r]];
    print_spread(mesh, out, AXIS_TP, largest);
    print_spread(mesh, out, AXIS_EP, largest);
    for (int node = 0, r = 0; table && node < mesh->n_nodes; node++) {
        while (mesh->node_of[r] != node) r++; /* nodes are numbered by their lowest rank */
        fprintf(out, "node    %d %s: ranks ", node, mesh->host[r]);
        print_ranks(mesh, out, node);
        fprintf(out, "\n");
    }
    free(n_ranks);
}
