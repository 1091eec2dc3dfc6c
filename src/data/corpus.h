/*
 * corpus.h - text files, directories or standard input as one stream of bytes with document ends,
 * for the programs that make shards. A document ends with its file, and at each line that equals
 * the separator, which is not part of the text.
 */
#pragma once

#include "data/shard.h"

#include <stdbool.h>

enum corpus_event {
    CORPUS_BYTES,        /* a piece of text */
    CORPUS_DOCUMENT_END, /* perhaps of an empty document */
    CORPUS_END,
    CORPUS_FAULT
};

struct corpus;

/*
 * paths: n files and directories; "-" is standard input. A directory stands for its regular files
 * at any depth in the order of `find DIR | LC_ALL=C sort`, hidden ones left out. separator may be
 * NULL, both are borrowed. repeatable: corpus_rewind will be called, so standard input is copied to
 * a temporary file. NULL with fault when something cannot be read. Free with corpus_close.
 */
struct corpus *corpus_try_open(char *const *paths, int n, const char *separator, bool repeatable,
                               struct shard_fault *fault);
void corpus_close(struct corpus *corpus);

/* What comes next. CORPUS_BYTES: bytes and n are set, valid until the next call; n > 0. */
enum corpus_event corpus_next(struct corpus *corpus, const char **bytes, int64_t *n,
                              struct shard_fault *fault);
void corpus_rewind(struct corpus *corpus);

int64_t corpus_file_bytes(const struct corpus *corpus); /* sum of the files' sizes; 0: unknown */
int64_t corpus_done_bytes(const struct corpus *corpus); /* read of them so far */
int corpus_files(const struct corpus *corpus);
