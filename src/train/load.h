/*
 * load.h - tensors of a checkpoint into a run, whatever mesh has written them: every rank reads its
 * pieces (pieces.h). What is read is checked first: by the checksums of the boxes themselves where
 * they are those that were written, else all written boxes are, each by one of the ranks; and no
 * element may be infinite or NaN.
 *
 * A fault of any rank is every rank's: -1 on all; rank 0's fault is that of the lowest that has
 * one. Collective.
 */
#pragma once

#include "ckpt/manifest.h"
#include "train/run.h"

/* Each tensor of the run that the manifest lacks or has in another shape. Not collective. */
void load_check_tensors(const struct run *run, const struct manifest *m, struct err_list *errs);

/* Masters, moments and biases; then the weights of all ranks, which are compared. */
int load_try_all(struct run *run, const struct manifest *m, const char *dir, struct fault *fault);

/* The weights that each rank computes with, and the biases, all of which the checkpoint must have,
 * of a run placed by run_place_model. */
int load_try_compute(struct run *run, const struct manifest *m, const char *dir,
                     struct fault *fault);

/* How many of the run's weights and biases the manifest has in the same shape. The others are added
 * to missing, those of the manifest that the run has not to unused. Not collective. */
int load_match_weights(const struct run *run, const struct manifest *m, struct err_list *missing,
                       struct err_list *unused);

/* These are loaded; the others keep their values. */
int load_try_weights(struct run *run, const struct manifest *m, const char *dir,
                     struct fault *fault);
