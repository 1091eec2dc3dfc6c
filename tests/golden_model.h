/*
 * golden_model.h - a whole model on the CPU backend with the configuration and the starting values
 * of a golden file: what the tests of model and optimizer against recorded numbers start from.
 */
#pragma once

#include "model/model.h"
#include "tests/golden.h"

struct golden_model {
    struct config cfg;
    struct mesh mesh;
    struct stream *stream;
    struct arena weights, grads, staging;
    struct comm comm;
    struct param_table params;
    struct model model;
    int64_t n_label[1 + MAX_MTP]; /* of the last forward */
};

/* Between MPI_Init and MPI_Finalize; every rank of the mesh. dir: where the configuration may be
 * written as a file. overrides: n of the form section.key=value. Free with golden_model_free. */
void golden_model_init(struct golden_model *gm, const struct golden *g, const char *dir, int n,
                       char *const overrides[]);

/* The part of it that takes the memory, of a zeroed struct with its cfg: no values yet. */
void golden_model_build(struct golden_model *gm);
void golden_model_free(struct golden_model *gm);

/* Zero all gradients, set the weights of the losses from the configuration and the labels of this
 * batch, run forward. Only for one rank. token, doc_start [B, T + 1]. */
void golden_model_forward(struct golden_model *gm, const int32_t *token, const int32_t *doc_start);

/* Of the last forward: the mean loss of stage k, the weighted balance loss, and the step's loss. */
double golden_model_stage_loss(const struct golden_model *gm, int k);
double golden_model_balance_loss(const struct golden_model *gm);
double golden_model_loss(const struct golden_model *gm);
