/*
 * optim.h - from accumulated gradients to new weights: reduce each bucket's gradient to its shards,
 * global norm, clip, AdamW on the shard, gather the weights (ZeRO-1; Rajbhandari et al. 2020).
 */
#pragma once

#include "base/arena.h"
#include "comm/comm.h"
#include "model/param.h"
#include "optim/schedule.h"

struct optim {
    const struct config *cfg;
    const struct backend *be;
    struct stream *stream;
    struct comm *comm;
    struct param_table *params;
    void *m[N_BUCKETS], *v[N_BUCKETS]; /* moments of this rank's shards, optimizer.moments_dtype */
    double *norm_parts;                /* backend memory, one F64 a parameter */
    double *h_norm_parts;              /* host copy */
    float *h_chunk;                    /* host: weights on their way from or to the backend */
    int32_t *bad, h_bad;               /* what adamw has found; backend memory and its copy */
};

/* Takes moments (zeroed) and, for BF16 buckets, F32 masters from the arena (sets bucket.master;
 * for F32 buckets the master is the shard's place in w). be NULL: a plan pass, with a counting
 * arena. */
void optim_init(struct optim *opt, const struct config *cfg, const struct backend *be,
                struct stream *stream, struct comm *comm, struct param_table *params,
                struct arena *arena);
void optim_free(struct optim *opt);

/* Fill masters from (seed, name, global index) and w of all ranks from the masters; padding and all
 * gradients become zero. Collective. */
void optim_init_weights(struct optim *opt);

/* Masters, padding included, become zero: before they are read from a checkpoint. */
void optim_zero_weights(struct optim *opt);

/* Whether all ranks of each bucket's axis have the same weights, bit for bit. Collective, equal on
 * all ranks. */
bool optim_replicas_agree(struct optim *opt);

/* w of all ranks from the masters. Collective. */
void optim_gather_weights(struct optim *opt);

/* Sum each bucket's gradient over its axis; the result lies in this rank's shard of grad.
 * Collective. */
void optim_reduce_gradients(struct optim *opt);

/* Global L2 norm of the reduced gradient, each element of each parameter once, sums in F64 in a
 * fixed order, equal on all ranks. Not finite if any element is not. Collective over world. */
double optim_grad_norm(struct optim *opt);

/* Whether a gradient of this norm may reach the weights: it is finite, and clipped its square fits
 * the F32 second moment (without a clip a finite gradient could make that infinite). */
bool optim_norm_fits(const struct optim *opt, double grad_norm);

/* After optim_grad_norm has found a norm that does not fit: the first parameter, in table order,
 * whose values are to blame, and the rank whose own gradient has them (the lowest of them; the
 * shard's owner when only the sum over ranks has). Destroys the gradients. Collective; the same
 * result on all ranks. */
struct optim_fault {
    const struct param *param;
    int rank;
};
struct optim_fault optim_find_fault(struct optim *opt, double grad_norm);

/* Instead of a step: the gradients become zero, and nothing else changes. */
void optim_zero_gradients(struct optim *opt);

/* One AdamW step of the shards with the gradients scaled by min(1, clip / (norm + 1e-6)), then
 * gather w, then zero all gradients. The norm fits; update: how many steps with this one have been
 * made (bias correction), from 1. False: a master or moment of this rank's shards is not finite
 * now, and what went before it is gone. Collective; the result is this rank's. */
bool optim_step(struct optim *opt, int64_t update, double lr, double grad_norm);

/* After optim_step was false on a rank: the first parameter, in table order, with such a number,
 * and the lowest rank that has one; the rest is known to that rank alone. Collective. */
struct optim_spoiled {
    const struct param *param;
    int rank;
    const char *what; /* "weight", "mean" or "mean square" */
    int64_t element;  /* of the parameter's global shape */
    double value;
};
struct optim_spoiled optim_find_spoiled(struct optim *opt);

/* Hash of all parameters and their L2 norm: the hash is a sum over elements of a mix of (name,
 * global index, bits of the F32 master), so that equal values give it on any mesh; the norm is
 * equal up to the rounding of F64 sums. Collective; the result is valid on every rank. */
void optim_param_hash(struct optim *opt, uint64_t *hash, double *l2);

/* The part that local elements first .. first + n - 1 of p have in that hash; their masters are x,
 * in host memory. */
uint64_t optim_hash_values(const float *x, const struct param *p, const struct mesh *mesh,
                           int64_t first, int64_t n);
