/*
 * text.h - text files, directories or standard input as one stream of bytes with document ends, for
 * the programs that make shards. A document ends with its file, and at each line that equals the
 * separator, which is not part of the text.
 */
#pragma once

#include "data/shard.h"

#include <stdbool.h>

enum text_event {
    TEXT_BYTES,        /* a piece of text */
    TEXT_DOCUMENT_END, /* perhaps of an empty document */
    TEXT_END,
    TEXT_FAULT
};

struct text;

/*
 * paths: n files and directories; "-" is standard input. A directory stands for its regular files
 * at any depth in the order of `find DIR | LC_ALL=C sort`, hidden ones left out. separator may be
 * NULL, both are borrowed. repeatable: text_rewind will be called, so standard input is copied to a
 * temporary file. NULL with fault when something cannot be read. Free with text_close.
 */
struct text *text_try_open(char *const *paths, int n, const char *separator, bool repeatable,
                           struct shard_fault *fault);
void text_close(struct text *text);

/* What comes next. TEXT_BYTES: bytes and n are set, valid until the next call; n > 0. */
enum text_event text_next(struct text *text, const char **bytes, int64_t *n,
                          struct shard_fault *fault);
void text_rewind(struct text *text);

int64_t text_file_bytes(const struct text *text); /* sum of the files' sizes; 0: unknown */
int64_t text_done_bytes(const struct text *text); /* read of them so far */
int text_files(const struct text *text);
