/* writer.c - see writer.h. */
#include "train/writer.h"

#include "base/err.h"
#include "base/mem.h"
#include "ckpt/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

void writer_init(struct writer *w, const struct run *run, const struct pieces *pieces, int n_files)
{
    const size_t n = (size_t)pieces->n;
    *w = (struct writer){.run = run, .pieces = pieces, .n_files = n_files, .done = true};
    w->box = mem_alloc(sizeof *w->box * n, "boxes of a checkpoint");
    w->piece = mem_alloc(sizeof *w->piece * n, "boxes of a checkpoint");
    w->from = mem_alloc(sizeof *w->from * n, "boxes of a checkpoint");
    w->fd = mem_alloc(sizeof *w->fd * (size_t)n_files, "files of a checkpoint");
}

void writer_free(struct writer *w)
{
    writer_join(w);
    mem_free(w->box);
    mem_free((void *)w->piece);
    mem_free((void *)w->from);
    mem_free(w->fd);
}

void writer_add(struct writer *w, const struct piece *piece, const void *from)
{
    w->box[w->n] = piece->box;
    w->piece[w->n] = piece;
    w->from[w->n++] = from;
}

static const struct ckpt_tensor *tensor_of(const struct writer *w, int i)
{
    return &w->pieces->tensor[w->box[i].tensor];
}

static const char *path_of(const struct writer *w, int file, char path[CKPT_PATH])
{
    snprintf(path, CKPT_PATH, "%.3900s/tensors-%05d.h5", w->dir, file);
    return path;
}

/* The file may not be there yet: its headers come from rank 0, whenever they do. */
static int try_open(struct writer *w, int file)
{
    char path[CKPT_PATH];
    if (w->fd[file] >= 0) return 0;
    w->fd[file] = io_try_create(path_of(w, file, path), O_RDWR, &w->fault);
    return w->fd[file] >= 0 ? 0 : -1;
}

static int try_write_box(struct writer *w, int i)
{
    const struct ckpt_tensor *t = tensor_of(w, i);
    const struct piece *piece = w->piece[i];
    char path[CKPT_PATH];
    if (try_open(w, t->file)) return -1;
    w->box[i].hash = XXH3_64bits(w->from[i], piece_bytes(piece));
    if (piece->is_weight && piece->param)
        w->param_hash += optim_hash_values(w->from[i], piece->param, &w->run->mesh, piece->first,
                                           piece->box.count);
    return io_try_box(w->fd[t->file], path_of(w, t->file, path), t, &w->box[i], (void *)w->from[i],
                      true, &w->fault);
}

/* checkpoint.verify: what the file gives back is what went in. */
static int try_read_back(struct writer *w, int i)
{
    const struct ckpt_tensor *t = tensor_of(w, i);
    const size_t bytes = piece_bytes(w->piece[i]);
    char path[CKPT_PATH];
    void *back = malloc(bytes);
    if (!back) return fault_set(&w->fault, CODE_IO, "no memory to read %zu bytes back", bytes);
    path_of(w, t->file, path);
    int bad = io_try_box(w->fd[t->file], path, t, &w->box[i], back, false, &w->fault);
    if (!bad && memcmp(back, w->from[i], bytes) != 0)
        bad = fault_set(&w->fault, CODE_IO, "%s: %s is not what was written", path, t->name);
    free(back);
    return bad;
}

static void write_all(struct writer *w)
{
    char path[CKPT_PATH];
    for (int i = 0; i < w->n_files; i++) w->fd[i] = -1;
    int bad = w->layout ? layout_try_write(w->layout, w->dir, &w->fault) : 0;
    for (int i = 0; !bad && i < w->n; i++) bad = try_write_box(w, i);
    for (int i = 0; !bad && w->run->cfg->checkpoint.verify && i < w->n; i++)
        bad = try_read_back(w, i);
    for (int i = 0; i < w->n_files; i++) /* closed, whatever has happened */
        if (w->fd[i] >= 0) bad = io_try_finish(w->fd[i], path_of(w, i, path), bad, &w->fault);
}

static void publish(struct writer *w)
{
    struct fault fault = {0};
    if (store_try_publish(w->root, w->manifest, &w->fault)) return;
    if (store_try_prune(w->root, w->keep_last, w->keep_every, -1, &fault))
        warn_line("old checkpoints: %s", fault.why);
}

static void *work(void *arg)
{
    struct writer *w = arg;
    if (w->manifest)
        publish(w);
    else
        write_all(w);
    atomic_store(&w->done, true);
    return NULL;
}

/* Signals are for the main thread. */
static void start_thread(struct writer *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->fault = (struct fault){0};
    w->done = false;
    w->running = true;
    const int error = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CHECK(error == 0, "no thread for a checkpoint: %s", strerror(error));
}

void writer_start(struct writer *w, const struct layout *layout)
{
    w->layout = layout;
    w->manifest = NULL;
    w->param_hash = 0;
    start_thread(w);
}

void writer_publish(struct writer *w, const char *root, const struct manifest *manifest,
                    int keep_last, int64_t keep_every)
{
    w->root = root;
    w->manifest = manifest;
    w->keep_last = keep_last;
    w->keep_every = keep_every;
    start_thread(w);
}

bool writer_done(const struct writer *w)
{
    return atomic_load(&w->done);
}

void writer_join(struct writer *w)
{
    if (w->running) pthread_join(w->thread, NULL);
    w->running = false;
}
