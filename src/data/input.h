/*
 * input.h - files, directories or standard input as bytes, for corpus.h: which files there are, in
 * which order, and reading them one after the other, unpacked where they are packed (unpack.h).
 */
#pragma once

#include "data/shard.h"

#include <stdbool.h>

struct input;

/*
 * paths: n files, directories and patterns (names.h), borrowed; "-" is standard input. A directory
 * stands for its regular files at any depth in the order of `find DIR | LC_ALL=C sort`, hidden ones
 * left out. repeatable: input_rewind will be called, so standard input is copied to a temporary
 * file. NULL with fault when something cannot be read. Free with input_close.
 */
struct input *input_try_open(char *const *paths, int n, bool repeatable, struct fault *fault);
void input_close(struct input *in);

/* The path of the file that is read now, NULL behind the last; and its number. */
const char *input_path(const struct input *in);
int input_file(const struct input *in);
/* More bytes of it, valid until the next call. 1: there are n > 0; 0: it has ended; -1: fault. */
int input_try_read(struct input *in, const char **bytes, int64_t *n, struct fault *fault);
void input_next_file(struct input *in);
void input_rewind(struct input *in);

int64_t input_file_bytes(const struct input *in); /* sum of the files' sizes; 0: unknown */
int64_t input_done_bytes(const struct input *in); /* read of them so far */
