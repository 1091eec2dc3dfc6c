/*
 * writer.h - the thread behind a save: writes a rank's boxes from their copies, or, on rank 0, the
 * manifest. One job at a time; the main thread asks whether it is done and does not wait.
 */
#pragma once

#include "ckpt/layout.h"
#include "ckpt/store.h"
#include "train/pieces.h"

#include <pthread.h>
#include <stdatomic.h>

struct writer {
    const struct run *run;
    const struct pieces *pieces;
    int n; /* boxes */
    struct ckpt_box *box;
    const struct piece **piece; /* [n] */
    const void **from;          /* [n] their copies */
    int n_files;
    char dir[CKPT_PATH]; /* where to */
    struct fault fault;  /* when done */
    uint64_t param_hash; /* this rank's part of optim_param_hash, of the copies; when done */

    const struct layout *layout;     /* NULL: another rank writes it */
    const char *root;                /* of a job that publishes */
    const struct manifest *manifest; /* the same; NULL: the job writes boxes */
    struct store_keep keep;
    bool told_latest;
    double safe_s; /* when it had its name */
    pthread_t thread;
    bool running; /* not joined */
    atomic_bool done;
};

void writer_init(struct writer *w, const struct run *run, const struct pieces *pieces, int n_files);
void writer_free(struct writer *w);

/* One more box, the copy of which will lie at `from`. */
void writer_add(struct writer *w, const struct piece *piece, const void *from);

/* All boxes into files in w->dir, with their checksums, and the layout's headers; then synced. An
 * element that is not finite is a fault of CODE_INTERNAL. */
void writer_start(struct writer *w, const struct layout *layout);

/* The manifest; then old checkpoints go. */
void writer_publish(struct writer *w, const char *root, const struct manifest *manifest,
                    const struct store_keep *keep);

bool writer_done(const struct writer *w); /* also when nothing was started */
void writer_join(struct writer *w);
