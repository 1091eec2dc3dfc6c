/*
 * io.h - reading and writing that is whole or a fault: short transfers and interruptions go on,
 * every message names the file, and what was written is on the disk when it is synced.
 */
#pragma once

#include "ckpt/manifest.h"

struct stat;

/* bytes at offset; a file that ends before is a fault of CODE_DATA, others are CODE_IO. */
int io_try_read(int fd, const char *path, void *to, int64_t bytes, int64_t offset,
                struct fault *fault);
int io_try_write(int fd, const char *path, const void *from, int64_t bytes, int64_t offset,
                 struct fault *fault);

/* A file to write, made when it is not there: flags beside O_CREAT and O_CLOEXEC. Returns its
 * descriptor, or -1. */
int io_try_create(const char *path, int flags, struct fault *fault);

/* Synced and closed; after a fault before it, bad, only closed. Returns bad, or what is wrong now.
 */
int io_try_finish(int fd, const char *path, int bad, struct fault *fault);

/* A file of this text, synced. */
int io_try_write_file(const char *path, const char *text, int64_t bytes, struct fault *fault);

/* A regular file to read. Fills st; returns the descriptor, or -1. */
int io_try_open(const char *path, struct stat *st, struct fault *fault);

/* The whole of a file of at most max bytes, NUL-terminated, in new memory (free with free()); NULL
 * is a fault. */
char *io_try_read_file(const char *path, int64_t max, int64_t *bytes, struct fault *fault);

/* The directory and those above it, where they are not there. */
int io_try_make_dirs(const char *dir, struct fault *fault);

/* The names in a directory are on the disk. */
int io_try_sync_dir(const char *path, struct fault *fault);

/* Fills fault with CODE_IO and "cannot WHAT PATH: errno's text". */
int io_fault(struct fault *fault, const char *what, const char *path);

/* The disk begins to take these bytes, where it can be told to. Their sync says what went wrong. */
void io_start_writeback(int fd, int64_t offset, int64_t bytes);

/* Elements [done, done + n) of a box, in its order. */
struct ckpt_box io_box_part(const struct ckpt_box *box, int64_t done, int64_t n);

/* The elements of a box of the tensor, between an open file and memory, in the box's order. */
int io_try_box(int fd, const char *path, const struct ckpt_tensor *tensor,
               const struct ckpt_box *box, void *memory, bool write, struct fault *fault);
