/*
 * save.h - checkpoints of a run, written behind training: at a step boundary every rank copies its
 * masters and moments (the stall), then a thread of its own writes and syncs them; when all have,
 * rank 0's thread writes the manifest and gives the directory its name. The main threads learn how
 * far they are from a reduction that each step makes anyway (run.h, struct agreed). The next save
 * waits for the last. A number that is not finite is never published and ends the run; while steps
 * are skipped no older checkpoint is removed. src/ckpt/ has the files, docs/checkpoint.md describes
 * them.
 */
#pragma once

#include "ckpt/store.h"
#include "train/run.h"

/* Whether the settings ask for any checkpoint. */
bool save_wanted(const struct config *cfg);

/* The copies' memory, in run->snapshot; in a plan pass it counts. */
void save_place(struct run *run);

/* After the weights have their first values: which tensors lie where. Fatal with CODE_IO when
 * run.dir/checkpoints cannot be made, whatever checkpoint.on_error says: there is nothing yet that
 * could be lost. Collective. */
void save_init(struct run *run);
void save_free(struct run *run);

/* run.dir/checkpoints. Returns path. */
const char *save_root(const struct config *cfg, char path[CKPT_PATH]);

/* Whether settings and clock ask for one after the step just done; equal on all ranks. */
bool save_due(const struct run *run);

/* Begin a checkpoint of the step just done. Collective. */
void save_start(struct run *run);

/* The same, and return when it is safe; nothing to do when it is already. False: it could not be
 * written, which has been told, or checkpoints are off. Collective. */
bool save_now(struct run *run);

/* Return when no save is on its way. Collective. */
void save_wait(struct run *run);

/* This rank's part of what the ranks agree about; and to go on with what they have agreed. A save
 * that failed ends the run or is told, as checkpoint.on_error says. */
void save_tell(const struct run *run, struct agreed *mine);
void save_advance(struct run *run);

/* At the end: whether the last save that was begun has failed, which rank 0 tells. */
bool save_lost(const struct run *run);

/* The checkpoint of this step is there: nothing is lost up to it. run->best is what it says. */
void save_is_at(struct run *run, int64_t step);
