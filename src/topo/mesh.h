/*
 * mesh.h - where a rank sits. World = dp x tp for dense parameters; experts lie on the same ranks
 * as edp x ep. Rank order: tp fastest, then contiguous blocks of ep ranks, so that an expert group
 * stays on as few nodes as possible:
 *
 *     tp_rank = rank % tp    dp_rank  = rank / tp
 *     ep_rank = rank % ep    edp_rank = rank / ep
 *
 * A node is what MPI_Comm_split_type(SHARED) says, or topology.ranks_per_node consecutive ranks.
 */
#pragma once

#include "config/config.h"

#include <mpi.h>
#include <stdio.h>

enum axis { AXIS_WORLD, AXIS_DP, AXIS_TP, AXIS_EP, AXIS_EDP, N_AXES };

struct mesh_axis {
    enum axis axis;  /* which one this is */
    int size, rank;  /* of this rank along the axis */
    int *world_rank; /* [size] world ranks of the members, in axis order */
    bool *same_node; /* [size] whether a member is on this rank's node */
    MPI_Comm comm;   /* MPI_COMM_NULL in a planned mesh */
};

struct mesh {
    int rank, size;
    int dp, tp, ep, edp;
    int node, n_nodes, local_rank, local_size;
    int machine_rank, machine_ranks; /* of this machine, whatever topology.ranks_per_node says */
    int core_sharers;                /* ranks of this machine that may run on this rank's cores */
    int *node_of;                    /* [size] each rank's node */
    char (*host)[64];                /* [size] names, for messages only */
    struct mesh_axis axis[N_AXES];
};

/* Collective over MPI_COMM_WORLD. The config must have passed config_try_check_ranks. Owns the
 * communicators until mesh_free (collective). */
void mesh_init(struct mesh *mesh, const struct config *cfg);

/* The mesh that `rank` of such a job has, without communicators and without MPI: nodes are
 * ranks_per_node consecutive ranks. Not collective, nor is its mesh_free. */
struct mesh_shape {
    int size, tp, ep, ranks_per_node; /* tp and ep divide size */
};
void mesh_plan(struct mesh *mesh, const struct mesh_shape *shape, int rank);

void mesh_free(struct mesh *mesh);

const char *axis_name(enum axis axis); /* "world", "dp", ... */

/* Lines about where the launcher has put the ranks. Of tp and ep, a line when a group is on more
 * nodes than its size needs; with table also a line for every node: its number, host and ranks. */
void mesh_print_nodes(const struct mesh *mesh, FILE *out, bool table);

/* Cores this process may run on, and cores of the machine. */
int mesh_cores(void);
int mesh_machine_cores(void);

/* Threads a rank should use: run.threads, or OMP_NUM_THREADS, but not more than the cores it may
 * run on / the ranks that share them, or 1: threads that wait for one another spin, and with more
 * of them than cores a run crawls. */
int mesh_threads(const struct mesh *mesh, const struct config *cfg);

/* Threads that somebody asked for, and in *by where; 0: nobody did. */
int mesh_threads_asked(const struct config *cfg, const char **by);

/* The text of rank 0, NUL-terminated, on every rank; new memory, free with free(). Collective over
 * MPI_COMM_WORLD. text is read on rank 0 only. */
char *mesh_broadcast_text(const char *text);

/* bytes of rank 0 on every rank, in place. Collective over MPI_COMM_WORLD. what: for the message
 * when a rank does not come. */
void mesh_broadcast(void *data, size_t bytes, const char *what);

/* bytes of every rank of this machine, in their order, in all [machine_ranks * bytes]. Collective
 * over MPI_COMM_WORLD. what: as above. */
void mesh_gather_machine(const struct mesh *mesh, const void *mine, size_t bytes, void *all,
                         const char *what);

/* x [n] of all ranks combined by op (MPI_MIN, MPI_BOR, ...), in place on every rank. Collective
 * over MPI_COMM_WORLD. what: as above. */
void mesh_combine(int *x, int n, MPI_Op op, const char *what);

/* n items of item_bytes of every rank, one rank's behind the other's, in all, on rank 0 only, where
 * counts [ranks] says how many each sends; counts NULL: n of each. Collective over MPI_COMM_WORLD.
 * what: as above. */
void mesh_gather(const void *mine, size_t item_bytes, int n, void *all, const int *counts,
                 const char *what);

/* Collective over comm. If any rank is not ok, the lowest such rank prints why and the job ends
 * with code. */
#define AGREE(comm, ok, code, why) agree_at(__FILE__, __LINE__, comm, ok, code, why)
void agree_at(const char *file, int line, MPI_Comm comm, bool ok, enum exit_code code,
              const char *why);
