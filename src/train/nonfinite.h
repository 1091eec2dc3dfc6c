/*
 * nonfinite.h - numbers of a step that are not finite. Such a step is skipped: it changes no
 * weight, moment or selection bias, on any rank, and the data go on. The rank at fault says what it
 * is; when train.max_nonfinite_steps in a row were skipped before it, that ends the run. So does an
 * update that makes a weight or moment not finite, as the values before it are gone.
 *
 * step.c looks at the losses first: after a bad loss all gradients are bad, and the name of a
 * tensor would point to the wrong place.
 */
#pragma once

#include "train/run.h"

/* Which of the sums in run->h_loss is the first that is not finite: 0 main loss, k MTP depth k,
 * n_mtp + 1 balance loss; -1: none. Not collective. */
int nonfinite_loss(const struct run *run);

/* Skip the step for a loss. mine: nonfinite_loss of this rank's own sums. Collective over world. */
void nonfinite_skip_loss(struct run *run, int mine);

/* Skip the step for its gradient norm, see optim_norm_fits. Collective over world. */
void nonfinite_skip_gradient(struct run *run, double norm);

/* The update of the step just done has made numbers that are not finite: the rank that has the
 * first says which, and the run ends. Collective over world. */
void nonfinite_end_update(struct run *run, const struct step_report *r);

/* How many token losses since the last call were not finite, and where. Collective over world. */
struct bad_losses nonfinite_take_count(struct run *run);

/* debug.bad_grad_step: what a fault in one kernel on one rank would look like. */
void nonfinite_inject(struct run *run);
