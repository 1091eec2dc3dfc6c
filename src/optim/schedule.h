/*
 * schedule.h - everything that changes along a run, as pure functions of how far it is. Steps are
 * counted from 1; tokens and steps given here are those consumed before the step.
 */
#pragma once

#include "config/config.h"

/* How far a run is: what its schedules depend on. */
struct progress {
    int64_t step;    /* steps done, skipped ones included */
    int64_t tokens;  /* tokens read, those of skipped steps included (MTP does not count twice) */
    int64_t samples; /* number of the next sample, of all in the run's order */
    int64_t passed;  /* those before it that were passed over: data.skip_samples, rollbacks */
    int64_t skipped; /* steps whose loss or gradient was not finite: they changed nothing else */
};

/* Value of a staged quantity at `at` (tokens or steps, as train.schedule_unit says). */
double schedule_stages(const struct stages *stages, double base, double at);

/* Learning rate of the next step: warm-up factor (step + 1) / warmup_steps, then the schedule. */
double schedule_lr(const struct config *cfg, const struct progress *at);

/* Sequences of the next step, a multiple of train.global_batch_multiple when ramped. */
int schedule_global_batch(const struct config *cfg, const struct progress *at);

/* Sequences of the largest step, when all stages of the ramp are reached. */
int schedule_largest_batch(const struct config *cfg);

/* Micro-batches of each of dp data-parallel ranks in a step of so many sequences: how many
 * gradients it accumulates. */
int schedule_micro_batches(const struct config *cfg, int batch, int dp);

/* Where a run that is at `from` will be after train.steps; counts beyond 64 bits stay at the
 * largest. Of `skipped` it knows nothing, and passes over no samples. */
struct progress schedule_end(const struct config *cfg, const struct progress *from);

/* What is accepted but can hardly be meant, with the numbers: a warm-up longer than the run, stages
 * that end after it, stages in tokens whose numbers look like steps. A line each, "key: ...". */
void schedule_warn(const struct config *cfg, struct err_list *warnings);

double schedule_router_bias_speed(const struct config *cfg, const struct progress *at);
double schedule_mtp_loss_weight(const struct config *cfg, const struct progress *at);
