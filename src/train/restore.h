/*
 * restore.h - where a run starts: at a checkpoint (run.resume), with the weights of one
 * (run.init_from), or anew. A checkpoint is used only when every byte of it is as its checksums
 * say; any mesh reads what any other has written. docs/checkpoint.md.
 */
#pragma once

#include "train/run.h"

/* Where a checkpoint is taken: fills weights, moments, biases, run->progress and run->resumed, and
 * says on rank 0 what is taken, what is not and why. One that is not of this model or these data
 * ends the run with CODE_CONFIG and every difference; run.resume auto passes over those that are
 * broken; when all are, or the one that is named is, the run ends with CODE_DATA. Writes nothing.
 * Collective. */
void run_resume(struct run *run);

/* In a run: back to the newest checkpoint of a step up to `latest`, or else the oldest, as
 * run_resume takes one; later ones of run.dir are set aside. run->rollbacks and run->skip stay.
 * False: there is none. No save may be on its way. Collective. */
bool restore_older(struct run *run, int64_t latest);

/* Then: run.dir is made, or what it has of later steps is put aside; a run that starts anew gets
 * its first weights. Collective. */
void run_begin(struct run *run);
