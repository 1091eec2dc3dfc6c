/*
 * plan.h - what a rank of a run takes, before it takes it: bytes of memory by role, and bytes sent
 * in a step. Found by running the start-up and one step themselves without a backend: arenas count
 * instead of allocating, collectives count instead of sending.
 */
#pragma once

#include "comm/comm.h"
#include "model/model.h"

/* One arena each, but for the activations, which have the model's three. */
enum memory_role {
    ROLE_WEIGHTS,
    ROLE_GRADIENTS,
    ROLE_OPTIMIZER,
    ROLE_ACTIVATIONS,
    ROLE_STAGING,
    ROLE_CHECKPOINT, /* the copy that is written behind training */
    N_ROLES
};
const char *memory_role_name(enum memory_role role); /* "weights", ... */

struct memory {
    size_t role[N_ROLES];
    struct model_memory activations; /* the parts of role[ROLE_ACTIVATIONS] */
};
size_t memory_total(const struct memory *memory);

/* Every expert gets the same number of rows, or all that can arrive at this rank's does. The
 * activations differ, and the bytes sent are of the first. */
struct plan {
    struct memory balanced, worst;
    struct comm_counts sent; /* by this rank in the step of the largest batch */
    int n_micro;             /* micro-batches of that step */
    int64_t n_params;        /* parameters whose weights this rank has */
};

/* The plan of the rank of that mesh, which may be a planned one (mesh_plan). Touches little memory,
 * whatever the model's size. Not collective, needs no MPI. */
void plan_rank(struct plan *plan, const struct config *cfg, const struct mesh *mesh);

/* Ranks of a job whose plans are equal. */
struct rank_kind {
    int first, n_ranks; /* the lowest of them, and how many they are */
    struct plan plan;
};

/* The plans of all ranks of a job: returns how many kinds there are, and them in new memory (free
 * with free()), in the order of their lowest ranks. Needs no MPI. */
int plan_job(struct rank_kind **kinds, const struct config *cfg, const struct mesh_shape *shape);
