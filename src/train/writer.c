/* writer.c - see writer.h. */
#include "train/writer.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/thread.h"
#include "ckpt/io.h"
#include "train/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    BLOCK = 4 << 20,     /* bytes that are written at once, at least, where a box has as many */
    WRITEBACK = 8 << 20, /* that the disk is told of at once, at least */
};

void writer_init(struct writer *w, const struct run *run, const struct pieces *pieces, int n_files)
{
    const size_t n = (size_t)pieces->n;
    *w = (struct writer){.run = run, .pieces = pieces, .n_files = n_files, .done = true};
    w->box = mem_alloc(sizeof *w->box * n, "boxes of a checkpoint");
    w->piece = mem_alloc(sizeof *w->piece * n, "boxes of a checkpoint");
    w->from = mem_alloc(sizeof *w->from * n, "boxes of a checkpoint");
}

void writer_free(struct writer *w)
{
    writer_join(w);
    mem_free(w->box);
    mem_free((void *)w->piece);
    mem_free((void *)w->from);
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

/* A file that is being written, and then synced by a thread of its own. */
struct out {
    int fd;
    char path[CKPT_PATH];
    pthread_t thread;
    bool syncing;
    int bad;
    struct fault fault;
};

/* The file may not be there yet: its headers come from rank 0, whenever they do. */
static int try_open(struct writer *w, struct out *out, int file)
{
    path_print(out->path, "%s/tensors-%05d.h5", w->dir, file);
    out->fd = io_try_create(out->path, O_RDWR, &w->fault);
    if (out->fd < 0) return -1;
    return w->layout ? layout_try_write(&w->layout->file[file], out->fd, out->path, &w->fault) : 0;
}

/* Block by block; bytes from *begun on begin their way to the disk when there are enough. */
static int try_write_box(struct writer *w, const struct out *out, int i, int64_t *begun)
{
    const struct ckpt_box *box = &w->box[i];
    const struct ckpt_tensor *t = tensor_of(w, i);
    const int64_t size = (int64_t)dtype_bytes(t->dtype), most = BLOCK / size;
    for (int64_t done = 0, n; done < box->count; done += n) {
        const int64_t left = box->count - done;
        n = left < 2 * most ? left : most;
        const struct ckpt_box part = io_box_part(box, done, n), last = io_box_part(&part, n - 1, 1);
        const int64_t end = t->offset + (last.base + last.first + 1) * size;
        char *from = (char *)w->from[i] + done * size;
        if (io_try_box(out->fd, out->path, t, &part, from, true, &w->fault)) return -1;
        if (end - *begun < WRITEBACK) continue;
        io_start_writeback(out->fd, *begun, end - *begun);
        *begun = end;
    }
    return 0;
}

/* checkpoint.verify: what the file gives back is what went in. */
static int try_read_back(struct writer *w, const struct out *out, int i)
{
    const struct ckpt_tensor *t = tensor_of(w, i);
    const size_t bytes = piece_bytes(w->piece[i]);
    void *back = malloc(bytes);
    if (!back) return fault_set(&w->fault, CODE_IO, "no memory to read %zu bytes back", bytes);
    int bad = io_try_box(out->fd, out->path, t, &w->box[i], back, false, &w->fault);
    if (!bad && memcmp(back, w->from[i], bytes) != 0)
        bad = fault_set(&w->fault, CODE_IO, "%s: %s is not what was written", out->path, t->name);
    free(back);
    return bad;
}

/* Boxes [first, end) are those in the file. */
static int try_write_file(struct writer *w, struct out *out, int file, int first, int end)
{
    int bad = try_open(w, out, file);
    int64_t begun = w->layout ? 0 : tensor_of(w, first)->offset;
    for (int i = first; !bad && i < end; i++) bad = try_write_box(w, out, i, &begun);
    if (w->run->cfg->checkpoint.verify)
        for (int i = first; !bad && i < end; i++) bad = try_read_back(w, out, i);
    return bad;
}

static void *sync_file(void *arg)
{
    struct out *out = arg;
    out->bad = io_try_finish(out->fd, out->path, out->bad, &out->fault);
    return NULL;
}

/* Closes the file as well, whatever has happened. */
static void start_sync(struct out *out, const struct out *written, int bad)
{
    *out = *written;
    out->bad = bad;
    out->syncing = !bad && pthread_create(&out->thread, NULL, sync_file, out) == 0;
    if (!out->syncing && out->fd >= 0) sync_file(out);
}

static int join_sync(struct writer *w, struct out *out, int bad)
{
    if (out->syncing) pthread_join(out->thread, NULL);
    out->syncing = false;
    if (!bad && out->bad) w->fault = out->fault;
    return bad ? bad : out->bad;
}

/* What is not finite is never published: it would be resumed from. */
static int try_hash_box(struct writer *w, int i)
{
    const struct piece *piece = w->piece[i];
    const struct ckpt_box *box = &w->box[i];
    const int bad =
        ckpt_try_finite(w->dir, tensor_of(w, i), box, 0, box->count, w->from[i], &w->fault);
    if (bad) w->fault.code = CODE_INTERNAL;
    w->box[i].hash = XXH3_64bits(w->from[i], piece_bytes(piece));
    if (piece->is_weight && piece->param)
        w->param_hash += optim_hash_values(w->from[i], piece->param, &w->run->mesh, piece->first,
                                           piece->box.count);
    return bad;
}

/* Boxes are in the order of the files. While one of these is synced, which is when most of it gets
 * to the disk, its boxes are hashed and the next one is written. */
static void write_all(struct writer *w)
{
    struct out synced = {0}, out = {0};
    int bad = 0;
    for (int file = 0, first = 0, end = 0; !bad && file < w->n_files; file++, first = end) {
        while (end < w->n && tensor_of(w, end)->file == file) end++;
        if (first == end && !w->layout) continue;
        bad = try_write_file(w, &out, file, first, end);
        bad = join_sync(w, &synced, bad);
        start_sync(&synced, &out, bad);
        for (int i = first; !bad && i < end; i++) bad = try_hash_box(w, i);
    }
    join_sync(w, &synced, bad);
}

static void publish(struct writer *w)
{
    struct fault fault = {0};
    owner_check(w->run->owner);
    if (store_try_publish(w->root, w->manifest, &w->fault)) return;
    w->safe_s = clock_s();
    const int64_t step = w->manifest->state.step;
    if (store_try_move_latest(w->root, step, &fault) && !w->told_latest) {
        warn_line("%s; checkpoints are good without that link", fault.why);
        w->told_latest = true;
    }
    if (store_try_prune(w->root, &w->keep, &fault)) warn_line("old checkpoints: %s", fault.why);
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

static void start_thread(struct writer *w)
{
    w->fault = (struct fault){0};
    w->done = false;
    w->running = true;
    thread_start(&w->thread, work, w, "a checkpoint");
}

void writer_start(struct writer *w, const struct layout *layout)
{
    w->layout = layout;
    w->manifest = NULL;
    w->param_hash = 0;
    start_thread(w);
}

void writer_publish(struct writer *w, const char *root, const struct manifest *manifest,
                    const struct store_keep *keep)
{
    w->root = root;
    w->manifest = manifest;
    w->keep = *keep;
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
