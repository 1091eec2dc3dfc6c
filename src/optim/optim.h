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

/* Sum each bucket's gradient over its axis; the result lies in this rank's shard of grad.
 * Collective. */
void optim_reduce_gradients(struct optim *opt);

/* Global L2 norm of the reduced gradient, each element of each parameter once, sums in F64 in a
 * fixed order, equal on all ranks. Not finite if any element is not. Collective over world. */
double optim_grad_norm(struct optim *opt);

/* After a norm that is not finite: the rank whose own gradient has the first such tensor (the
 * lowest of them; the shard's owner when only the sum over ranks is not finite) prints it with its
 * step, and the job ends with CODE_INTERNAL; no weight has changed. Collective, never returns. */
_Noreturn void optim_die_nonfinite(struct optim *opt, int64_t step);

/* One AdamW step of the shards with the gradients scaled by min(1, clip / (norm + 1e-6)), then
 * gather w, then zero all gradients. step counts from 1. Collective. */
void optim_step(struct optim *opt, int64_t step, double lr, double grad_norm);

/* Hash of all parameters and their L2 norm: the hash is a sum over elements of a mix of (name,
 * global index, bits of the F32 master), so that equal values give it on any mesh; the norm is
 * equal up to the rounding of F64 sums. Collective; the result is valid on every rank. */
void optim_param_hash(struct optim *opt, uint64_t *hash, double *l2);
