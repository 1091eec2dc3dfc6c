/*
 * dataset.h - the inside of a dataset, for the files of this directory and the tools: the shards of
 * all sources in their order, and reading one sample. The manual is data.h.
 */
#pragma once

#include "data/data.h"
#include "data/shard.h"

/* One source: some shards in a row that are one stream of tokens. */
struct source {
    int64_t first_token;  /* of all tokens of the dataset */
    int64_t first_sample; /* the number of its first sample */
    int64_t n_samples;
    int64_t from, n;      /* the samples of it that are visited: from .. from + n - 1 */
    uint64_t weight;      /* relative to the others */
    uint64_t fingerprint; /* of the shards up to its last */
};

struct dataset {
    const char *what; /* "train", "heldout" */
    int T, n_shards, n_sources;
    int64_t n_tokens, n_documents;
    uint64_t fingerprint;
    struct shard *shard; /* [n_shards] of all sources */
    int64_t *first;      /* [n_shards + 1] tokens before each shard */
    int *source_of;      /* [n_shards] */
    struct source source[MAX_SOURCES];
    struct mix_start mix_start;
    bool is_cut; /* the shards are borrowed from the dataset that it was cut from */
};

/* The shard that holds token at of the dataset, 0 <= at < n_tokens. */
int dataset_shard_at(const struct dataset *ds, int64_t at);

/* The first of the first n shards whose tokenizer is known, or NULL. */
const struct shard *dataset_known_tokenizer(const struct dataset *ds, int n);

/* The lowest rank that is not ok prints its fault and the job ends. Collective over MPI_COMM_WORLD
 * when mesh is not NULL. */
void dataset_agree(const struct dataset *ds, const struct mesh *mesh, bool ok,
                   const struct fault *fault);

/* The source of sample number i. */
const struct source *dataset_source_of(const struct dataset *ds, int64_t i);

/* Weights of sources as integers; their shares are those of weight to 1 part in 2^31. */
void dataset_set_weights(struct dataset *ds, const struct data_sources *sources);

/* Reads samples through a cache of decoded frames; one per thread. Borrows ds. */
struct window;
struct window *window_init(const struct dataset *ds);
void window_free(struct window *win);

/* token and doc_start [T + 1] of one sample, as in struct batch. 0, or -1 with fault. */
int window_try_read(struct window *win, int64_t sample, int32_t *token, int32_t *doc_start,
                    struct fault *fault);
