/* mesh.c - coordinates and communicators; see mesh.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "topo/mesh.h"

#include "base/err.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *axis_name(enum axis axis)
{
    static const char *const names[N_AXES] = {"world", "dp", "tp", "ep", "edp"};
    return names[axis];
}

/* How many ranks this machine has, and how many of them may run on a core that this rank may run
 * on, itself included. */
static void count_machine_ranks(struct mesh *mesh)
{
    MPI_Comm local;
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mesh->rank, MPI_INFO_NULL,
                                  &local));
    int n_local, n = 0;
    MPI_CHECK(MPI_Comm_size(local, &n_local));
    cpu_set_t mine, both, *sets = malloc(sizeof *sets * (size_t)n_local);
    CHECK(sets, "no memory for %d core sets", n_local);
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    MPI_CHECK(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, sets, sizeof mine, MPI_BYTE, local));
    for (int r = 0; r < n_local; r++) {
        CPU_AND(&both, &mine, &sets[r]);
        n += CPU_COUNT(&both) > 0;
    }
    free(sets);
    MPI_CHECK(MPI_Comm_free(&local));
    mesh->machine_ranks = n_local;
    mesh->core_sharers = n > 0 ? n : 1;
}

/* Ranks with equal color form an axis and keep their world order in it. */
static void axis_init(struct mesh *mesh, enum axis axis, int color, const int *node_of)
{
    struct mesh_axis *a = &mesh->axis[axis];
    MPI_CHECK(MPI_Comm_split(MPI_COMM_WORLD, color, mesh->rank, &a->comm));
    MPI_CHECK(MPI_Comm_size(a->comm, &a->size));
    MPI_CHECK(MPI_Comm_rank(a->comm, &a->rank));
    a->world_rank = malloc(sizeof(int) * (size_t)a->size);
    a->same_node = malloc(sizeof(bool) * (size_t)a->size);
    CHECK(a->world_rank && a->same_node, "no memory for an axis of %d ranks", a->size);
    MPI_CHECK(MPI_Allgather(&mesh->rank, 1, MPI_INT, a->world_rank, 1, MPI_INT, a->comm));
    for (int r = 0; r < a->size; r++) a->same_node[r] = node_of[a->world_rank[r]] == mesh->node;
}

/* Number the nodes by their lowest rank, whatever the hosts are called. */
static void find_node(struct mesh *mesh, int ranks_per_node, int *node_of)
{
    int leader;
    if (ranks_per_node > 0) {
        leader = mesh->rank / ranks_per_node * ranks_per_node;
    } else {
        MPI_Comm local;
        MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mesh->rank,
                                      MPI_INFO_NULL, &local));
        MPI_CHECK(MPI_Allreduce(&mesh->rank, &leader, 1, MPI_INT, MPI_MIN, local));
        MPI_CHECK(MPI_Comm_free(&local));
    }
    MPI_CHECK(MPI_Allgather(&leader, 1, MPI_INT, node_of, 1, MPI_INT, MPI_COMM_WORLD));
    int *number = malloc(sizeof(int) * (size_t)mesh->size);
    CHECK(number, "no memory for %d ranks", mesh->size);
    for (int r = 0; r < mesh->size; r++) {
        if (node_of[r] == r) number[r] = mesh->n_nodes++;
    }
    for (int r = 0; r < mesh->size; r++) {
        if (node_of[r] == leader) {
            mesh->local_rank += r < mesh->rank;
            mesh->local_size++;
        }
    }
    for (int r = 0; r < mesh->size; r++) node_of[r] = number[node_of[r]];
    mesh->node = node_of[mesh->rank];
    free(number);
}

void mesh_init(struct mesh *mesh, const struct config *cfg)
{
    memset(mesh, 0, sizeof *mesh);
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &mesh->rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &mesh->size));
    mesh->tp = cfg->topology.tp;
    mesh->ep = cfg->topology.ep;
    CHECK(mesh->size % mesh->tp == 0 && mesh->size % mesh->ep == 0,
          "%d ranks do not divide over tp %d and ep %d", mesh->size, mesh->tp, mesh->ep);
    mesh->dp = mesh->size / mesh->tp;
    mesh->edp = mesh->size / mesh->ep;

    count_machine_ranks(mesh);
    int *node_of = malloc(sizeof(int) * (size_t)mesh->size);
    CHECK(node_of, "no memory for %d ranks", mesh->size);
    find_node(mesh, cfg->topology.ranks_per_node, node_of);
    axis_init(mesh, AXIS_WORLD, 0, node_of);
    axis_init(mesh, AXIS_DP, mesh->rank % mesh->tp, node_of);
    axis_init(mesh, AXIS_TP, mesh->rank / mesh->tp, node_of);
    axis_init(mesh, AXIS_EP, mesh->rank / mesh->ep, node_of);
    axis_init(mesh, AXIS_EDP, mesh->rank % mesh->ep, node_of);
    free(node_of);
}

void mesh_free(struct mesh *mesh)
{
    for (int a = 0; a < N_AXES; a++) {
        struct mesh_axis *axis = &mesh->axis[a];
        if (axis->world_rank) MPI_CHECK(MPI_Comm_free(&axis->comm));
        free(axis->world_rank);
        free(axis->same_node);
    }
    memset(mesh, 0, sizeof *mesh);
}

int mesh_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int mesh_machine_cores(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int mesh_threads(const struct mesh *mesh, const struct config *cfg)
{
    const int share = mesh_cores() / mesh->core_sharers, most = share > 1 ? share : 1;
    const char *from_env = getenv("OMP_NUM_THREADS");
    int asked = cfg->run.threads;
    if (asked == 0 && from_env) asked = atoi(from_env);
    return asked > 0 && asked < most ? asked : most;
}

char *mesh_broadcast_text(const char *text)
{
    int rank;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    int64_t n = rank == 0 ? (int64_t)strlen(text) : 0;
    MPI_CHECK(MPI_Bcast(&n, 1, MPI_INT64_T, 0, MPI_COMM_WORLD));
    char *copy = calloc(1, (size_t)n + 1);
    CHECK(copy, "no memory for %lld bytes of text", (long long)n);
    if (rank == 0) memcpy(copy, text, (size_t)n);
    MPI_CHECK(MPI_Bcast(copy, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD));
    return copy;
}

void agree_at(const char *file, int line, MPI_Comm comm, bool ok, enum exit_code code,
              const char *why)
{
    int rank, size, first;
    MPI_CHECK(MPI_Comm_rank(comm, &rank));
    MPI_CHECK(MPI_Comm_size(comm, &size));
    const int mine = ok ? size : rank;
    MPI_CHECK(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm));
    if (first == size) return;
    if (first == rank) die_at(code, file, line, "agree", "%s", why);
    for (;;) pause(); /* the speaker's MPI_Abort ends this process */
}
