/*
 * dataset.h - the inside of a dataset, for the files of this directory and the tools: shards in
 * their order as one stream of tokens, and reading one sample of it. The manual is data.h.
 */
#pragma once

#include "data/data.h"
#include "data/shard.h"

struct dataset {
    const char *what; /* "train", "heldout" */
    int T, n_shards;
    int64_t n_tokens, n_documents, n_samples;
    uint64_t fingerprint;
    struct shard *shard; /* [n_shards] */
    int64_t *first;      /* [n_shards + 1] tokens before each shard */
};

/* The shard that holds token at of the stream, 0 <= at < n_tokens. */
int dataset_shard_at(const struct dataset *ds, int64_t at);

/* Reads samples through a cache of decoded frames; one per thread. Borrows ds. */
struct window;
struct window *window_init(const struct dataset *ds);
void window_free(struct window *win);

/* token and doc_start [T + 1] of one sample, as in struct batch. 0, or -1 with fault. */
int window_try_read(struct window *win, int64_t sample, int32_t *token, int32_t *doc_start,
                    struct shard_fault *fault);
