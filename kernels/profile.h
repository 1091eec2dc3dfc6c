/*
 * profile.h - a backend that measures another one: every call goes on to it and is counted, with
 * its seconds and with the work its shape cannot do without: FLOP, and bytes when every input is
 * read once and every output written once. debug.profile puts it between the model and the machine
 * (train/setup.c). docs/performance.md says how to read what profile_print prints.
 *
 * Operations have no argument that could carry a record, so there is one profile in a process.
 */
#pragma once

#include "kernels/backend.h"

#include <stdio.h>

/* What this rank has of the machine while all ranks compute: the denominators. */
struct profile_bounds {
    double flops_f32, flops_bf16; /* FLOP/s */
    double bandwidth;             /* bytes/s */
};

/* Seconds of one step, of this rank. */
struct profile_step {
    double step_s, data_s, comm_s;
};

/* The table that measures be, under the same name; be outlives it. Nothing is counted yet. */
const struct backend *profile_backend(const struct backend *be);

/* Count the calls from here on as part of a step, up to profile_stop. */
void profile_start(void);
void profile_stop(const struct profile_step *step);

/* Tables of all counted steps: phases, operations, products by shape. Nothing before a step. */
void profile_print(FILE *out, const struct profile_bounds *bounds);
