/*
 * unpack.h - files of text as people have them: plain, or packed by gzip or zstd, which the first
 * bytes tell, whatever the name. What is packed otherwise is refused with the program to unpack it.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

enum { UNPACK_HEAD_BYTES = 16 }; /* that tell how a file is packed */

struct unpacker;

struct unpacker *unpacker_init(void); /* free with unpacker_free */
void unpacker_free(struct unpacker *u);

/* Begins a file with its first n bytes: UNPACK_HEAD_BYTES, or all that it has. path is borrowed
 * until the next file. -1 with fault: packed by something else, or not at all although its name
 * ends in .gz or .zst. */
int unpacker_try_begin(struct unpacker *u, const char *path, const char *head, int64_t n,
                       struct fault *fault);
/* Whether the file is packed; otherwise its bytes are the text. */
bool unpacker_is_packed(const struct unpacker *u);

/* Unpacks some of the bytes from *from to end into at most room bytes of to, and moves *from behind
 * what was used. Returns how many were made; 0 when that needs more bytes; -1 with fault. */
int64_t unpacker_try(struct unpacker *u, const char **from, const char *end, char *to, int64_t room,
                     struct fault *fault);
/* The file has no more bytes. -1 with fault: it is truncated. */
int unpacker_try_end(const struct unpacker *u, struct fault *fault);
