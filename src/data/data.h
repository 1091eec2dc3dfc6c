/*
 * data.h - token shards -> batches. A dataset is a list of .tok.zst shards read as one stream of
 * tokens: the files of the config in its order, a directory standing for its shards in the bytewise
 * order of their names. Sample i is tokens i*T .. i*T+T (T + 1 tokens, the last one shared with the
 * next sample), running across shards; fewer than T tokens at the very end are in no sample. Global
 * sample number g of a run is sample permute(seed, epoch, g % S) with S samples an epoch: a pure
 * function, whatever the number of ranks, so the position in the data is the one integer g.
 */
#pragma once

#include "config/config.h"
#include "data/shard.h"
#include "topo/mesh.h"

/* Shards opened and checked; reading is thread-safe. */
struct dataset;

/*
 * Open every shard of paths (files, or directories whose *.tok.zst are taken, hidden files not).
 * Checks header, size, table, dtype and largest id against vocab_size, that no file comes twice,
 * that one tokenizer made them all, and that there is at least one sample. Faults are fatal with
 * CODE_NO_INPUT or CODE_DATA and name file and offset. skip_bad: a shard whose file is truncated,
 * altered (header, index, seek table) or empty on any rank is left out on all ranks instead, one
 * rank prints a line, and the dataset is that of the other shards. Collective over MPI_COMM_WORLD
 * when mesh is not NULL: every rank compares its fingerprint with rank 0's; the message names both.
 * what: "train" or "heldout", borrowed. Free with dataset_close.
 */
struct dataset *dataset_open(const struct path_list *paths, const char *what, int sequence_length,
                             int vocab_size, bool skip_bad, const struct mesh *mesh);
void dataset_close(struct dataset *ds);
int64_t dataset_samples(const struct dataset *ds); /* samples an epoch: (tokens - 1) / T */
int64_t dataset_tokens(const struct dataset *ds);
int64_t dataset_documents(const struct dataset *ds);
uint64_t dataset_fingerprint(const struct dataset *ds); /* of contents, not of paths */

/* Which sample of the dataset global sample number g is. shuffle false: g % S. */
int64_t dataset_sample_at(const struct dataset *ds, uint64_t seed, bool shuffle, int64_t g);

/* One micro-batch. */
struct batch {
    int n, T;
    int32_t *token;     /* [n, T + 1] */
    int32_t *doc_start; /* [n, T + 1] place in the window of the first token of each token's
                           document; 0 if it starts before the window */
    int64_t *sample;    /* [n] sample of the dataset */
};

/* Reads ahead on its own thread. */
struct reader;

/* Borrows ds. At most depth requests of at most max_n samples are outstanding. */
struct reader *reader_init(const struct dataset *ds, uint64_t seed, bool shuffle, int max_n,
                           int depth);
void reader_free(struct reader *rd);

/* Ask for the n samples with global sample numbers g[0..n); they are read in the background. */
void reader_request(struct reader *rd, const int64_t *g, int n);

/* The oldest outstanding request, valid until the next call. Blocks (sleeping, not spinning). NULL
 * with fault, now and on every later call, when a place is unreadable or an id not in the
 * vocabulary (file, offset, id), or when the file system does not answer before the deadline for
 * ranks (run.deadline_s). Not collective: the caller agrees with the other ranks. */
const struct batch *reader_try_wait(struct reader *rd, struct shard_fault *fault);
