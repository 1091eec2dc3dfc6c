/*
 * store.h - the directory of a run's checkpoints, ROOT/step-00001000, and what may be done with
 * them: list, begin one, publish it, remove old ones, read and check tensors. A checkpoint is
 * written as ROOT/step-00001000.tmp, its manifest last; then it is renamed. A directory without
 * .tmp and with a good manifest is whole. ROOT/latest points to the newest one where the file
 * system can do that: for people, nothing here reads it. ROOT and step-NNNNNNNN may be links to
 * directories: they are read through the link, and removed by removing the link.
 *
 * Errors as in manifest.h.
 */
#pragma once

#include "base/path.h"
#include "ckpt/manifest.h"

enum { CKPT_PATH = PATH_BYTES };

/* Steps of the checkpoints in ROOT, newest first, in new memory (free with free()); what has
 * another name is not seen. A ROOT that is no directory has none; one that is a link to nothing is
 * a fault: its disk may be away. Returns how many. */
int store_try_list(const char *root, int64_t **steps, struct fault *fault);

/* The same of those that were not finished: temporary names, left behind by a run that was killed.
 */
int store_try_list_unfinished(const char *root, int64_t **steps, struct fault *fault);

/* Makes ROOT, and gives the path of a file in it that nothing lies at. */
int store_try_prepare(const char *root, char scratch[CKPT_PATH], struct fault *fault);

/* Checkpoints of later steps get names that end in .left: a run goes on from `step`, and they are
 * of a future that it will not have. Returns how many. */
int store_try_set_aside(const char *root, int64_t step, struct fault *fault);

/* What a path given by a user stands for: a run's directory or ROOT for its newest whole checkpoint
 * (a warning names those that are skipped), the directory of one for itself; and a run's directory
 * for the ROOT in it. Returns the first. */
const char *store_resolve(char dir[CKPT_PATH], const char *path);
const char *store_resolve_root(char root[CKPT_PATH], const char *path);

/* ROOT/step-00001000, and the name under which it is being written. Returns path. */
const char *store_path(char path[CKPT_PATH], const char *root, int64_t step);
const char *store_tmp_path(char path[CKPT_PATH], const char *root, int64_t step);

/* A directory for the checkpoint of that step: what an unfinished save has left under its temporary
 * name is removed; ROOT is made when needed. */
int store_try_begin(const char *root, int64_t step, struct fault *fault);

/* All tensors lie in it and are synced: writes config.yaml and the manifest, syncs, looks whether
 * all files are there in full, renames. A whole checkpoint of the same step that was there is
 * replaced, and is lost only when the new one has its name. */
int store_try_publish(const char *root, const struct manifest *manifest, struct fault *fault);

/* Makes ROOT/latest point to that step. A fault does no harm: a file system without links, or a
 * copy of a checkpoint under that name, which is left alone. */
int store_try_move_latest(const char *root, int64_t step, struct fault *fault);

/* Which checkpoints stay: the newest `last` (0: all), those of steps that `every` divides (0: none
 * for that), the one of step `best` and the one of step `written` (-1: none). */
struct store_keep {
    int last;
    int64_t every, best, written;
};

/* Removes the others. Left-over temporary directories of steps up to the newest go, too. */
int store_try_prune(const char *root, const struct store_keep *keep, struct fault *fault);

/* Whether the i-th of these steps, newest first, would be removed. */
bool store_is_old(const int64_t *steps, int i, const struct store_keep *keep);

/* One checkpoint, finished or not: its manifest first, then its other files, then the directory,
 * which stays when anything else lies in it. Of a link only the link. */
int store_try_drop(const char *path, struct fault *fault);

/* Everything that runs have made in ROOT, whole or not: names that no run gives stay. */
int store_try_clear(const char *root, struct fault *fault);

/* Open files of one checkpoint, for reading. */
struct ckpt_reader {
    const struct manifest *manifest;
    const char *dir;
    int *fd; /* [n_files], -1: not open yet */
};
void ckpt_reader_init(struct ckpt_reader *reader, const struct manifest *manifest, const char *dir);
void ckpt_reader_free(struct ckpt_reader *reader);

/* n elements of a tensor from element `first`, in the tensor's dtype, into `to`. */
int ckpt_try_read(struct ckpt_reader *reader, const struct ckpt_tensor *tensor, int64_t first,
                  int64_t n, void *to, struct fault *fault);

/* Elements [done, done + n) of a box, in its order. It need not be one that was written. */
int ckpt_try_read_part(struct ckpt_reader *reader, const struct ckpt_box *box, int64_t done,
                       int64_t n, void *to, struct fault *fault);

/* Reads box i of the manifest, in buffer-sized pieces, and compares its checksum; then, whether all
 * its elements are finite. The fault names file, tensor and box or element. */
int ckpt_try_verify_box(struct ckpt_reader *reader, int i, struct fault *fault);

/* x: elements [done, done + n) of a box of the tensor, in its order. One that is not finite is a
 * fault that names tensor and element; where: the file. */
int ckpt_try_finite(const char *where, const struct ckpt_tensor *tensor, const struct ckpt_box *box,
                    int64_t done, int64_t n, const void *x, struct fault *fault);

/* The fault of a box whose bytes have the checksum `got`. Returns -1. */
int ckpt_altered(const struct ckpt_reader *reader, const struct ckpt_box *box, uint64_t got,
                 struct fault *fault);

/* All of it: every box, and what follows. Stops at the first fault. */
int ckpt_try_verify(struct ckpt_reader *reader, struct fault *fault);

/* The same for the bytes of file i that belong to no tensor, and for config.yaml. */
int ckpt_try_verify_file(struct ckpt_reader *reader, int i, struct fault *fault);
int ckpt_try_verify_config(struct ckpt_reader *reader, struct fault *fault);
