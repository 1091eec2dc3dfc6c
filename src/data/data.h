/*
 * data.h - token shards -> batches. A dataset is one or more sources; a source is a list of shards
 * (shard.h) read as one stream of tokens: the files of the config in its order, a directory
 * standing for its shards in the bytewise order of their names. Sample i of a source is tokens i*T
 * .. i*T+T (T + 1 tokens, the last one shared with the next sample), running across shards; fewer
 * than T tokens at the very end are in no sample. Samples are numbered through all sources.
 *
 * Global sample number g of a run is of a source that weights and g alone decide, and of its
 * samples permute(seed, epoch, k % S), S being its samples an epoch and k how many of its samples
 * came before: a pure function, whatever the number of ranks, so the position in the data is the
 * one integer g. Where a resumed run mixes its sources otherwise than before, or cuts them into
 * sequences of another length, a struct mix_start carries each source on from its own count.
 */
#pragma once

#include "config/config.h"
#include "data/shard.h"
#include "topo/mesh.h"

/* Shards opened and checked; reading is thread-safe. */
struct dataset;

/*
 * Open every shard of the sources (files, or directories whose shards are taken by their names).
 * Checks headers, sizes, indexes and ids (docs/data.md), that no file comes twice, that one
 * tokenizer made all of which it is known, and that each source has at least one sample. Faults are
 * fatal with CODE_NO_INPUT or CODE_DATA and name file and offset. skip_bad: a shard whose file is
 * truncated, altered (header, index, seek table) or empty on any rank is left out on all ranks
 * instead, one rank prints a line, and the dataset is that of the other shards. Collective over
 * MPI_COMM_WORLD when mesh is not NULL: every rank compares its fingerprint with rank 0's; the
 * message names both. what: "train" or "heldout", borrowed. Free with dataset_close.
 */
struct dataset *dataset_open(const struct data_sources *sources, const char *what,
                             int sequence_length, int vocab_size, bool skip_bad,
                             const struct mesh *mesh);
void dataset_close(struct dataset *ds);

/*
 * Each eod_id and bos_id that the sources state (those that ds was opened with) is among the ids;
 * with masked (data.document_mask) every source has documents that end: its files list them, or
 * such an id is there. Looks at 64 frames of a shard at most, spread over it, and stops at the
 * first hit; each shard is looked at by one rank. Faults are fatal with CODE_DATA. Collective like
 * dataset_open.
 */
void dataset_check_documents(const struct dataset *ds, const struct data_sources *sources,
                             bool masked, const struct mesh *mesh);

/* Held-out data are of the tokenizer of the training data, where both are known, and no file of
 * them, nor a copy of one, is trained on. Faults and collective as above. */
void dataset_check_heldout(const struct dataset *train, const struct dataset *heldout,
                           const struct mesh *mesh);

/* Takes the last samples of every source, the share of them rounded up, out of ds and returns them
 * as a dataset of its own that borrows the shards of ds: close it first. NULL with fault when
 * nothing would be left of a source; ds is of no use then. */
struct dataset *dataset_try_cut(struct dataset *ds, const char *what, double share,
                                struct fault *fault);

/* From now on sources count by their size: the first dataset_samples numbers are every sample once.
 */
void dataset_weigh_by_size(struct dataset *ds);

int64_t dataset_samples(const struct dataset *ds); /* of all sources: (tokens - 1) / T of each */
int64_t dataset_tokens(const struct dataset *ds);
double dataset_token_bytes(const struct dataset *ds);   /* of text a token, mean; 0: not known */
int64_t dataset_documents(const struct dataset *ds);    /* that are listed, not those told by ids */
uint64_t dataset_fingerprint(const struct dataset *ds); /* of contents, not of paths */
uint64_t dataset_tokenizer(const struct dataset *ds);   /* hash of what made it; 0: not known */

/* A mixture that does not begin with the run: before sample number g each source had already given
 * so many of its samples. All zero: it does. */
struct mix_start {
    int64_t g, taken[MAX_SOURCES];
};
/* From now on. No sample may have been asked for. */
void dataset_set_mix_start(struct dataset *ds, const struct mix_start *start);
const struct mix_start *dataset_mix_start(const struct dataset *ds);

/* What begins and ends documents and pads them; -1: none, not told, or shards disagree. */
struct special_ids {
    int bos, eod, pad;
};
struct special_ids dataset_ids(const struct dataset *ds);

/* Which sample of the dataset global sample number g is. shuffle false: in order. */
int64_t dataset_sample_at(const struct dataset *ds, uint64_t seed, bool shuffle, int64_t g);

struct source_info {
    const char *path;     /* of its first shard */
    int64_t n_samples;    /* an epoch */
    double share;         /* of all samples, by its weight */
    uint64_t fingerprint; /* of it and the sources before it, as that of a dataset of them */
};
int dataset_sources(const struct dataset *ds);
struct source_info dataset_source_info(const struct dataset *ds, int source);
/* How many of the first g samples are of the source; g from the start of the mixture on. */
int64_t dataset_taken(const struct dataset *ds, int source, int64_t g);

/* The global number, counted from the start of the mixture on, of the source's sample that k others
 * of it come before. */
int64_t dataset_number_of(const struct dataset *ds, int source, int64_t k);

/* The same of each source of a dataset that is not there, and whether two mixtures are the same:
 * as many sources, of the same shares. */
void data_sources_taken(const struct data_sources *sources, const struct mix_start *start,
                        int64_t g, int64_t taken[MAX_SOURCES]);
bool data_sources_mix_equally(const struct data_sources *a, const struct data_sources *b);

/* A source that is one file or directory, with nothing else stated. */
static inline struct data_sources data_source_at(const char *path)
{
    return (struct data_sources){
        1, {{.n_paths = 1, .path = {path}, .weight = 1, .eod_id = -1, .bos_id = -1}}};
}

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
const struct batch *reader_try_wait(struct reader *rd, struct fault *fault);
