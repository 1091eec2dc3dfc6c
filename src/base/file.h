/*
 * file.h - opening and reading files of input: configurations, shards, tokenizers, checkpoints.
 * Only regular files are opened; opening or reading a FIFO, a terminal or a device may never end. A
 * file system that does not answer may keep any call for ever, so each is noted while it lasts, and
 * a run ends itself when one has lasted too long (file_watch). Thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/* Opens a regular file, perhaps behind symbolic links, and fills st. Returns its descriptor, which
 * the caller closes; or -1 with *why (a text valid until the next call), and errno, which is 0 when
 * something else than a regular file was found. */
int file_open(const char *path, struct stat *st, const char **why);

/* Reads the bytes at offset. Returns how many there are, fewer only where the file ends; or -1 with
 * errno. path: for messages. */
ssize_t file_read(int fd, const char *path, void *to, size_t bytes, uint64_t offset);

/* Around any other call that a file system may keep. doing: "opening", "listing", ...; path is
 * borrowed until the end, op is the caller's. */
struct file_op {
    const char *doing, *path;
    int64_t offset; /* -1: none */
    double since_s;
    struct file_op *before, *after;
};
void file_begin(struct file_op *op, const char *doing, const char *path);
void file_end(struct file_op *op);

/* From now on a thread looks for calls that have lasted longer than 0.8 x deadline_s, so that a
 * rank that is kept speaks before those that wait for it: one ends this process with CODE_IO and a
 * line that names the file and the offset. Again: another deadline. */
void file_watch(double deadline_s);
