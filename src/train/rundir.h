/*
 * rundir.h - what lies in run.dir before a run begins there: whether it may, and metrics.jsonl of
 * the same run's earlier parts. Only rank 0 calls these; faults that are not returned are fatal.
 */
#pragma once

#include "base/path.h"
#include "config/config.h"

/* run.dir/metrics.jsonl. Returns path. */
const char *rundir_metrics(const char *dir, char path[PATH_BYTES]);

/* Makes run.dir where a run may start anew, which is: it is not there, or is empty, or
 * run.overwrite is set, or, when run.resume is auto, what lies in it is of a run of these very
 * settings that has saved no checkpoint. Else -1 with CODE_CONFIG; CODE_IO when it cannot be made.
 */
int rundir_try_claim(const struct config *cfg, struct fault *fault);

/* The last step of which metrics.jsonl reports a checkpoint; -1: none. */
int64_t rundir_last_save(const char *dir);

/* Cuts off what metrics.jsonl says of steps after this one, and of rollbacks beyond the first so
 * many: they will be made again. When it is a link to a file, that file is cut. Whether what is
 * left has the evaluation after that step. */
bool rundir_cut_metrics(const char *dir, int64_t step, int rollbacks);
