/*
 * job.h - the plan of a whole job, for `dsv3 plan`: the plans of its ranks (plan.h), which of them
 * count, and the other meshes that the same ranks could form.
 */
#pragma once

#include "train/plan.h"

struct job {
    const struct config *cfg; /* borrowed */
    struct mesh_shape shape;
    struct mesh mesh; /* of rank 0 */
    int64_t params;   /* of the model, MTP included */
    int n_kinds;
    struct rank_kind *kind;
    /* Of the rank that takes the most memory, with either routing, and of the one that sends the
     * most. */
    const struct plan *fullest, *fullest_worst, *busiest;
};

/* Nodes are topology.ranks_per_node ranks, or 8 where the configuration leaves that to MPI. */
void job_init(struct job *job, const struct config *cfg, int n_ranks);
void job_free(struct job *job);

/* Bytes that all ranks send in a step, as metrics.jsonl counts. */
struct comm_count job_sent(const struct job *job);

/* The role that takes the most of the fullest rank's memory, with balanced routing. */
enum memory_role job_largest_role(const struct job *job);

/* A mesh for the ranks of a job. */
struct mesh_option {
    int tp, ep, n_micro; /* n_micro: micro-batches of a step on each rank */
    size_t bytes;        /* of the fullest rank, with balanced routing */
    enum memory_role largest_role;
    struct comm_count sent; /* in a step, by the rank that sends the most */
};

/* All meshes that the configuration allows on so many ranks and of which no rank takes more than
 * max_bytes; those that send least to other nodes first. Returns how many, and them in new memory
 * (free with free()). */
int job_find_meshes(struct mesh_option **options, const struct config *cfg, int n_ranks,
                    uint64_t max_bytes);
