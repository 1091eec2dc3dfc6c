/*
 * pieces.h - the state of a run as a checkpoint names it: all its tensors, and the boxes of them
 * that this rank's optimizer shards hold (masters and moments), each in its place in memory. Every
 * element of every tensor lies in exactly one piece of one rank, whatever the mesh (param.h); the
 * selection biases, which all ranks have, are written by rank 0 and read by all.
 */
#pragma once

#include "ckpt/manifest.h"
#include "train/run.h"

struct piece {
    struct ckpt_box box;
    void *at;         /* the first element, in backend memory */
    enum dtype dtype; /* of it, F32 or BF16, the tensor's */
    bool shared;      /* on all ranks */
    /* the weights that it is of, which elements; NULL: selection biases */
    const struct param *param;
    int64_t first;
    bool is_weight; /* not a moment */
};

struct pieces {
    int n_tensors, n;
    struct ckpt_tensor *tensor; /* equal on all ranks; no file and offset yet */
    struct piece *piece;        /* in the tensors' order */
};

/* Of a run whose memory is placed. Free with pieces_free. */
void pieces_init(struct pieces *pieces, const struct run *run);

/* The weights with which this rank computes, and the biases, of a run placed by run_place_model or
 * run_place: shares of ranks overlap. */
void pieces_init_compute(struct pieces *pieces, const struct run *run);
void pieces_free(struct pieces *pieces);

static inline size_t piece_bytes(const struct piece *piece)
{
    return (size_t)piece->box.count * dtype_bytes(piece->dtype);
}
