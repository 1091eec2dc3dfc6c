/*
 * stop.h - how a run ends before its last step, to be started again later: after run.exit_after
 * minutes, or when a signal asks for it (base/signals.h). One rank that was asked is enough. It
 * says so where ranks agree anyway: at the end of each step and before each batch of an
 * evaluation. So all of them stop at the same place, save that step, and end with
 * CODE_REQUEUE.
 */
#pragma once

#include "train/run.h"

/* First of all, before MPI_Init: from here run.exit_after counts, and a signal ends the process. */
void stop_begin(void);

/* Before the first step: from here there is something to save. */
void stop_prepare(const struct run *run);

/* After a step of so many seconds: a warning, once, when Ctrl-C to mpirun would kill the ranks
 * before such a step and a save have ended. */
void stop_check_time(const struct run *run, double step_s);

/* This rank's part of what the ranks agree about. */
void stop_tell(const struct run *run, struct agreed *mine);

/* After the last step done, when run->agreed.stop is not 0: saves it, unless it is safe already.
 * CODE_REQUEUE, or CODE_IO when it could not be saved. Collective. */
enum exit_code stop_save(struct run *run);
