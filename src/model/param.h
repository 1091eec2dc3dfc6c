/*
 * param.h - the parameter table: one row for everything that is trained. Initialisation, gradient
 * reduction, clipping, optimizer, checkpoint, counts and planner walk this table; nothing else
 * knows names. Names and shapes are Hugging Face's; the experts of one layer and projection are
 * one row [E, out, in] named ...mlp.experts.gate_proj.weight.
 *
 * Rows are packed into buckets, one per (group, compute dtype). A bucket is one flat array per
 * rank, padded so that its optimizer shard (masters, moments) is an equal contiguous part on each
 * member of the group's axis (ZeRO-1). Every element of every parameter therefore lies in exactly
 * one shard of exactly one rank, whatever the mesh: sums over shards and AXIS_WORLD count it once.
 */
#pragma once

#include "base/arena.h"
#include "config/config.h"
#include "topo/mesh.h"

/* Which ranks hold the same values and reduce gradients together. */
enum param_group {
    GROUP_TP_SPLIT,   /* split over tp: reduced over dp */
    GROUP_REPLICATED, /* the same on all ranks: reduced over world */
    GROUP_EXPERT,     /* split over ep: reduced over edp */
    N_GROUPS
};
enum { N_BUCKETS = N_GROUPS * 2 };

enum param_part {
    PART_EMBEDDING,
    PART_ATTENTION, /* with the norms of its latents, as published counts have it */
    PART_DENSE_MLP,
    PART_ROUTED_EXPERTS,
    PART_SHARED_EXPERTS,
    PART_ROUTER,
    PART_NORM,
    PART_HEAD,
    N_PARTS
};

enum param_init { INIT_NORMAL, INIT_ONES };

struct param {
    char name[80];
    int n_dims;
    int64_t dim[3]; /* global shape */
    int split_dim;  /* -1: not split */
    enum axis split_axis;
    enum param_group group;
    enum param_part part;
    enum dtype dtype; /* of the compute copy: F32 for norms and router, else train.compute_dtype */
    enum param_init init;
    bool decay;
    int layer;     /* -1: outside the layers; num_hidden_layers + k: MTP module k */
    bool mtp;      /* belongs to an MTP module */
    int64_t n_all; /* elements over all ranks */
    int64_t n;     /* elements on this rank */
    int64_t local_dim[3];
    int bucket;
    int64_t offset; /* elements from the bucket's start */
    void *w;        /* compute copy, in the bucket */
    float *grad;
};

struct bucket {
    enum param_group group;
    enum dtype dtype;
    enum axis reduce_axis;
    int64_t n;       /* elements on this rank, padded; 0: bucket not used */
    int64_t n_shard; /* n / size of reduce_axis */
    int64_t shard0;  /* this rank's shard starts here */
    void *w;         /* [n] dtype */
    float *grad;     /* [n] */
    float *master;   /* [n_shard]; lies inside w when dtype is F32 */
};

struct param_table {
    int n_params;
    struct param *param;
    struct bucket bucket[N_BUCKETS];
};

/* Build the rows for this rank's place in the mesh; no tensor memory yet. Owns param until
 * param_table_free. Not collective. */
void param_table_init(struct param_table *table, const struct config *cfg, const struct mesh *mesh);

/* The same of a rank that has the whole model. */
void param_table_init_whole(struct param_table *table, const struct config *cfg);

void param_table_free(struct param_table *table);

/* Take w and grad of every bucket from the arenas (which may count only) and point the rows into
 * them. Nothing is zeroed. */
void param_table_place(struct param_table *table, struct arena *weights, struct arena *grads);

/* Row by name, or NULL. */
struct param *param_find(struct param_table *table, const char *name);

/* The global element number (row-major in the global shape) of local element i. */
int64_t param_global_index(const struct param *p, const struct mesh *mesh, int64_t i);

/* Local elements [first, first + count) of p that lie in this rank's optimizer shard; false when
 * there are none. */
bool param_in_shard(const struct param *p, const struct bucket *b, int64_t *first, int64_t *count);
