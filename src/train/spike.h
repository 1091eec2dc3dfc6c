/*
 * spike.h - train.on_spike: rollback. A step is a spike when its loss or gradient norm is above a
 * multiple of the median of the steps before it, or any number of it is not finite (nonfinite.h).
 * The run then returns to a checkpoint from before the batches that are to blame, passes these over
 * and goes on: with the same bits as a run that was told to pass them over (data.skip_samples),
 * since the order of all other samples and the number of steps stay what they are.
 */
#pragma once

#include "train/run.h"

/* Whether spikes are looked for. */
bool spike_wanted(const struct run *run);

/* The step just done has a number that is not finite; rank can say more in `what`. */
void spike_note(struct run *run, int rank, const char *reason, const char *what);

/* Looks at the step just done, and remembers it when it is no spike. Not collective; equal on all
 * ranks. */
void spike_look(struct run *run, const struct step_report *r);

/* After a step with run->spike.seen: back to the newest checkpoint from before the samples that are
 * passed over from now on; when there is none so old, the oldest there is. Ends the run with
 * CODE_INTERNAL when there is no checkpoint, or all of train.max_rollbacks are used. Collective. */
void run_roll_back(struct run *run);
