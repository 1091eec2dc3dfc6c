/* mesh.c - coordinates and communicators; see mesh.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/err.h"
#include "base/signals.h"
#include "topo/wait.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPEAKER_S = 15 }; /* longer than die_at takes at most */

const char *axis_name(enum axis axis)
{
    static const char *const names[N_AXES] = {"world", "dp", "tp", "ep", "edp"};
    return names[axis];
}

/* Bytes of every rank of comm, in order. */
static void gather(void *all, const void *mine, int bytes, MPI_Comm comm, const char *what)
{
    MPI_Request request;
    MPI_CHECK(MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm, &request));
    wait_all(AXIS_WORLD, what, 1, &request);
}

/* The communicator of the ranks that share memory with this one. */
static MPI_Comm split_machine(const struct mesh *mesh)
{
    MPI_Comm local;
    signals_guard("MPI_Comm_split_type", wait_deadline_s());
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mesh->rank, MPI_INFO_NULL,
                                  &local));
    signals_guard(NULL, 0);
    return local;
}

/* Which of this machine's ranks this one is, how many it has, and how many of them may run on a
 * core that this rank may run on, itself included. */
static void count_machine_ranks(struct mesh *mesh)
{
    MPI_Comm local = split_machine(mesh);
    int n_local, n = 0;
    MPI_CHECK(MPI_Comm_rank(local, &mesh->machine_rank));
    MPI_CHECK(MPI_Comm_size(local, &n_local));
    cpu_set_t mine, both, *sets = malloc(sizeof *sets * (size_t)n_local);
    CHECK(sets, "no memory for %d core sets", n_local);
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    gather(sets, &mine, sizeof mine, local, "gathering of core sets");
    for (int r = 0; r < n_local; r++) {
        CPU_AND(&both, &mine, &sets[r]);
        n += CPU_COUNT(&both) > 0;
    }
    free(sets);
    MPI_CHECK(MPI_Comm_free(&local));
    mesh->machine_ranks = n_local;
    mesh->core_sharers = n > 0 ? n : 1;
}

/* The members of an axis are the ranks first, first + stride, ... */
static void axis_place(struct mesh *mesh, enum axis axis, int size, int first, int stride,
                       const int *leader_of)
{
    struct mesh_axis *a = &mesh->axis[axis];
    *a = (struct mesh_axis){
        .axis = axis, .size = size, .rank = (mesh->rank - first) / stride, .comm = MPI_COMM_NULL};
    a->world_rank = malloc(sizeof(int) * (size_t)size);
    a->same_node = malloc(sizeof(bool) * (size_t)size);
    CHECK(a->world_rank && a->same_node, "no memory for an axis of %d ranks", size);
    for (int k = 0; k < size; k++) {
        a->world_rank[k] = first + k * stride;
        a->same_node[k] = leader_of[first + k * stride] == leader_of[mesh->rank];
    }
}

/* Everything but the communicators, for mesh->rank of mesh->size. leader_of [size]: the lowest rank
 * on each rank's node; nodes are numbered by it, whatever the hosts are called. */
static void place(struct mesh *mesh, int tp, int ep, const int *leader_of)
{
    const int rank = mesh->rank, size = mesh->size;
    CHECK(size % tp == 0 && size % ep == 0, "%d ranks do not divide over tp %d and ep %d", size, tp,
          ep);
    mesh->tp = tp;
    mesh->ep = ep;
    mesh->dp = size / tp;
    mesh->edp = size / ep;
    mesh->node_of = malloc(sizeof(int) * (size_t)size);
    CHECK(mesh->node_of, "no memory for the nodes of %d ranks", size);
    for (int r = 0; r < size; r++) {
        const bool here = leader_of[r] == leader_of[rank];
        mesh->node_of[r] = leader_of[r] == r ? mesh->n_nodes++ : mesh->node_of[leader_of[r]];
        mesh->local_rank += here && r < rank;
        mesh->local_size += here;
    }
    mesh->node = mesh->node_of[rank];
    axis_place(mesh, AXIS_WORLD, size, 0, 1, leader_of);
    axis_place(mesh, AXIS_DP, mesh->dp, rank % tp, tp, leader_of);
    axis_place(mesh, AXIS_TP, tp, rank / tp * tp, 1, leader_of);
    axis_place(mesh, AXIS_EP, ep, rank / ep * ep, 1, leader_of);
    axis_place(mesh, AXIS_EDP, mesh->edp, rank % ep, ep, leader_of);
}

/* Who leads each rank's node: ranks_per_node consecutive ranks, or (0) who shares memory. */
static int *find_leaders(const struct mesh *mesh, int ranks_per_node)
{
    int *leader_of = malloc(sizeof(int) * (size_t)mesh->size);
    CHECK(leader_of, "no memory for %d ranks", mesh->size);
    if (ranks_per_node > 0) {
        for (int r = 0; r < mesh->size; r++) leader_of[r] = r / ranks_per_node * ranks_per_node;
        return leader_of;
    }
    MPI_Comm local = split_machine(mesh);
    int leader = mesh->rank; /* the lowest rank of the machine has rank 0 in local */
    MPI_Request request;
    MPI_CHECK(MPI_Ibcast(&leader, 1, MPI_INT, 0, local, &request));
    wait_all(AXIS_WORLD, "naming of nodes", 1, &request);
    MPI_CHECK(MPI_Comm_free(&local));
    gather(leader_of, &leader, sizeof leader, MPI_COMM_WORLD, "gathering of nodes");
    return leader_of;
}

void mesh_plan(struct mesh *mesh, const struct mesh_shape *shape, int rank)
{
    CHECK(shape->ranks_per_node > 0, "a planned mesh needs the ranks of a node");
    *mesh = (struct mesh){.rank = rank, .size = shape->size};
    int *leader_of = find_leaders(mesh, shape->ranks_per_node);
    place(mesh, shape->tp, shape->ep, leader_of);
    mesh->machine_rank = mesh->local_rank;
    mesh->machine_ranks = mesh->core_sharers = mesh->local_size;
    free(leader_of);
}

static void find_hosts(struct mesh *mesh)
{
    char mine[sizeof *mesh->host] = "";
    gethostname(mine, sizeof mine - 1);
    mesh->host = malloc(sizeof *mesh->host * (size_t)mesh->size);
    CHECK(mesh->host, "no memory for the names of %d hosts", mesh->size);
    gather(mesh->host, mine, sizeof mine, MPI_COMM_WORLD, "gathering of hosts");
}

void mesh_init(struct mesh *mesh, const struct config *cfg)
{
    memset(mesh, 0, sizeof *mesh);
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &mesh->rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &mesh->size));
    find_hosts(mesh);
    count_machine_ranks(mesh);
    int *leader_of = find_leaders(mesh, cfg->topology.ranks_per_node);
    place(mesh, cfg->topology.tp, cfg->topology.ep, leader_of);
    free(leader_of);
    for (int i = 0; i < N_AXES; i++) {
        struct mesh_axis *a = &mesh->axis[i];
        signals_guard("MPI_Comm_split", wait_deadline_s());
        MPI_CHECK(MPI_Comm_split(MPI_COMM_WORLD, a->world_rank[0], mesh->rank, &a->comm));
        signals_guard(NULL, 0);
    }
    wait_set_mesh(mesh);
}

void mesh_free(struct mesh *mesh)
{
    if (mesh->host) {
        wait_barrier("end of the mesh");
        wait_set_mesh(NULL);
    }
    for (int i = 0; i < N_AXES; i++) {
        struct mesh_axis *a = &mesh->axis[i];
        if (a->world_rank && a->comm != MPI_COMM_NULL) MPI_CHECK(MPI_Comm_free(&a->comm));
        free(a->world_rank);
        free(a->same_node);
    }
    free(mesh->node_of);
    free(mesh->host);
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

int mesh_threads_asked(const struct config *cfg, const char **by)
{
    const char *from_env = getenv("OMP_NUM_THREADS");
    *by = cfg->run.threads > 0 ? "run.threads" : "OMP_NUM_THREADS";
    if (cfg->run.threads > 0 || !from_env) return cfg->run.threads;
    const int n = atoi(from_env);
    return n > 0 ? n : 0;
}

int mesh_threads(const struct mesh *mesh, const struct config *cfg)
{
    const char *by;
    const int share = mesh_cores() / mesh->core_sharers, most = share > 1 ? share : 1;
    const int asked = mesh_threads_asked(cfg, &by);
    return asked > 0 && asked < most ? asked : most;
}

void mesh_broadcast(void *data, size_t bytes, const char *what)
{
    MPI_Request request;
    MPI_CHECK(MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
    wait_all(AXIS_WORLD, what, 1, &request);
}

void mesh_gather_machine(const struct mesh *mesh, const void *mine, size_t bytes, void *all,
                         const char *what)
{
    MPI_Comm local = split_machine(mesh);
    gather(all, mine, (int)bytes, local, what);
    MPI_CHECK(MPI_Comm_free(&local));
}

void mesh_combine(int *x, int n, MPI_Op op, const char *what)
{
    MPI_Request request;
    MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, x, n, MPI_INT, op, MPI_COMM_WORLD, &request));
    wait_all(AXIS_WORLD, what, 1, &request);
}

void mesh_gather(const void *mine, size_t item_bytes, int n, void *all, const int *counts,
                 const char *what)
{
    int rank, size;
    MPI_Datatype item;
    MPI_Request request;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int *at = calloc((size_t)size, 2 * sizeof *at), *many = at + size;
    CHECK(at, "no memory for %d counts", size);
    for (int r = 0; rank == 0 && r < size; r++) {
        many[r] = counts ? counts[r] : n;
        at[r] = r ? at[r - 1] + many[r - 1] : 0;
    }
    MPI_CHECK(MPI_Type_contiguous((int)item_bytes, MPI_BYTE, &item));
    MPI_CHECK(MPI_Type_commit(&item));
    MPI_CHECK(MPI_Igatherv(mine, n, item, all, many, at, item, 0, MPI_COMM_WORLD, &request));
    wait_all(AXIS_WORLD, what, 1, &request);
    MPI_CHECK(MPI_Type_free(&item));
    free(at);
}

char *mesh_broadcast_text(const char *text)
{
    int rank;
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    int64_t n = rank == 0 ? (int64_t)strlen(text) : 0;
    mesh_broadcast(&n, sizeof n, "broadcast of a length");
    char *copy = calloc(1, (size_t)n + 1);
    CHECK(copy, "no memory for %lld bytes of text", (long long)n);
    if (rank == 0) memcpy(copy, text, (size_t)n);
    mesh_broadcast(copy, (size_t)n, "broadcast of a text");
    return copy;
}

void agree_at(const char *file, int line, MPI_Comm comm, bool ok, enum exit_code code,
              const char *why)
{
    int rank, size, first;
    MPI_CHECK(MPI_Comm_rank(comm, &rank));
    MPI_CHECK(MPI_Comm_size(comm, &size));
    const int mine = ok ? size : rank;
    MPI_Request request;
    MPI_CHECK(MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm, &request));
    wait_all(AXIS_WORLD, "agreement", 1, &request);
    if (first == size) return;
    if (first == rank) die_at(code, file, line, "agree", "%s", why);
    sleep(SPEAKER_S); /* the speaker's MPI_Abort ends this process */
    DIE(code, "rank %d failed but did not abort the job", first);
}
