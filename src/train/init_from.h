/*
 * init_from.h - the weights of a checkpoint for a run that starts anew (run.init_from).
 * docs/checkpoint.md.
 */
#pragma once

#include "ckpt/manifest.h"
#include "ckpt/store.h"
#include "train/run.h"

struct init_from {
    bool used;
    char dir[CKPT_PATH];
    struct manifest m;
};

/* Looks for run.init_from, after run_resume and before anything is written. A new run ends with
 * CODE_NO_INPUT or CODE_DATA when there is no checkpoint, and with CODE_CONFIG when its tensors
 * would be taken for others or not all of the model's are in it (run.init_from_partial: when none
 * is). A resumed run needs none of it: rank 0 says that it is ignored, or, as a warning, that it is
 * not there. Collective. */
void init_from_open(struct init_from *init, const struct run *run);

/* Weights and biases of a new run, which has its initial ones; rank 0 says which. Collective. */
void init_from_load(struct init_from *init, struct run *run);

void init_from_close(struct init_from *init);
