/*
 * dataset.c - lists of shards as streams of tokens. Opening is where a user's wrong files are
 * found: every rank opens every shard, the costly checks are divided among the ranks, and all must
 * see the same contents before the run goes on. The manual is data.h.
 */
#include "data/dataset.h"

#include "base/mem.h"
#include "data/names.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* A shard that is reached by two ways would be trained on twice an epoch without anyone asking. */
static int check_twice(const struct dataset *ds, int i, struct stat *seen, struct fault *fault)
{
    if (fstat(ds->shard[i].fd, &seen[i]) != 0)
        return fault_set(fault, CODE_NO_INPUT, "%s: %s", ds->shard[i].path, strerror(errno));
    for (int k = 0; k < i; k++)
        if (seen[k].st_dev == seen[i].st_dev && seen[k].st_ino == seen[i].st_ino)
            return fault_set(fault, CODE_DATA, "%s and %s are the same file", ds->shard[k].path,
                             ds->shard[i].path);
    return 0;
}

const struct shard *dataset_known_tokenizer(const struct dataset *ds, int n)
{
    for (int i = 0; i < n; i++)
        if (ds->shard[i].info.tokenizer_hash != 0) return &ds->shard[i];
    return NULL;
}

/* An open shard must fit the model and the shards before it. check: looks at some of its ids. */
static int try_add_shard(struct dataset *ds, int i, int vocab_size, bool check, struct fault *fault)
{
    struct shard *shard = &ds->shard[i];
    const struct shard_info *info = &shard->info;
    const struct shard *known = dataset_known_tokenizer(ds, i);

    shard->vocab = (uint64_t)vocab_size;
    if (info->max_id >= vocab_size)
        return fault_set(
            fault, CODE_DATA,
            "%s: largest id %ld (header, byte %zu), vocabulary %d (model.vocab_size): ids must be "
            "below it; the shard was made with tokenizer \"%s\", vocabulary %lu",
            shard->path, (long)info->max_id, offsetof(struct shard_header, max_id), vocab_size,
            info->tokenizer, (unsigned long)info->vocab_size);
    if (known && info->tokenizer_hash != 0 && info->tokenizer_hash != known->info.tokenizer_hash)
        return fault_set(
            fault, CODE_DATA, "%s: tokenizer \"%s\" (0x%016lx), but %s has \"%s\" (0x%016lx)",
            shard->path, info->tokenizer, (unsigned long)info->tokenizer_hash, known->path,
            known->info.tokenizer, (unsigned long)known->info.tokenizer_hash);
    if (check && shard_try_check_ids(shard, fault) != 0) return -1;
    ds->fingerprint = shard_fingerprint(shard, ds->fingerprint);
    ds->source[ds->source_of[i]].fingerprint = ds->fingerprint;
    ds->n_documents += info->n_documents;
    ds->n_tokens += info->n_tokens;
    ds->first[i + 1] = ds->n_tokens;
    return 0;
}

/* Thousands of shards stay open; the usual soft limit is 1024 files. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* One block: the struct, the shards, the sums, the sources, the names. */
static struct dataset *allocate(const struct names *names, int n_sources)
{
    size_t name_bytes = 0;
    for (int i = 0; i < names->n; i++) name_bytes += strlen(names->at[i]) + 1;
    const size_t n = (size_t)names->n;
    struct dataset *ds =
        mem_alloc(sizeof *ds + n * sizeof *ds->shard + (n + 1) * sizeof *ds->first +
                      n * sizeof *ds->source_of + name_bytes,
                  "dataset");

    ds->n_shards = names->n;
    ds->n_sources = n_sources;
    ds->shard = (struct shard *)(ds + 1);
    ds->first = (int64_t *)(ds->shard + n);
    ds->source_of = (int *)(ds->first + n + 1);
    for (int s = 0; s < n_sources; s++)
        for (int i = names->n_before[s]; i < names->n_before[s + 1]; i++) ds->source_of[i] = s;
    char *text = (char *)(ds->source_of + n);
    for (int i = 0; i < names->n; i++) {
        ds->shard[i].path = strcpy(text, names->at[i]);
        ds->shard[i].fd = -1;
        text += strlen(text) + 1;
    }
    return ds;
}

/* Numbers the samples of each source, which has at least one. */
static int try_number_samples(struct dataset *ds, struct fault *fault)
{
    int64_t n_samples = 0;
    int shard = 0;

    for (int s = 0; s < ds->n_sources; s++) {
        struct source *source = &ds->source[s];
        const int first = shard;
        while (shard < ds->n_shards && ds->source_of[shard] == s) shard++;
        const int64_t n_tokens = ds->first[shard] - ds->first[first];
        if (shard == first)
            return fault_set(fault, CODE_DATA,
                             "no shard of source %d is left: all of them are broken", s + 1);
        source->first_token = ds->first[first];
        source->first_sample = n_samples;
        source->n_samples = source->n = (n_tokens - 1) / ds->T;
        n_samples += source->n;
        if (source->n < 1)
            return fault_set(fault, CODE_DATA,
                             "%s%s: %ld tokens found, a sample needs %d (data.sequence_length + 1)",
                             ds->shard[first].path,
                             shard - first > 1 ? " and the other shards of its source" : "",
                             (long)n_tokens, ds->T + 1);
    }
    return 0;
}

/* Opens every shard and reads the whole index of every n-th, n being the number of ranks. With why
 * [n_shards], which takes a copy of its message, a broken shard is not yet a fault. */
static int try_open_shards(struct dataset *ds, const struct data_sources *sources,
                           const struct mesh *mesh, char **why, struct fault *fault)
{
    const int rank = mesh ? mesh->rank : 0, size = mesh ? mesh->size : 1;

    raise_open_files();
    for (int i = 0; i < ds->n_shards; i++) {
        struct shard *shard = &ds->shard[i];
        if (shard_try_open(shard, shard->path, &sources->at[ds->source_of[i]], fault) == 0 &&
            (i % size != rank || shard_try_check_index(shard, fault) == 0))
            continue;
        if (!why || fault->code != CODE_DATA) return -1;
        why[i] = strdup(fault->why);
        CHECK(why[i], "no memory for a message");
    }
    return 0;
}

static int try_fill(struct dataset *ds, int vocab_size, const struct mesh *mesh,
                    struct fault *fault)
{
    const int rank = mesh ? mesh->rank : 0, size = mesh ? mesh->size : 1;
    struct stat *seen = calloc((size_t)ds->n_shards + 1, sizeof *seen);
    int bad = 0;

    CHECK(seen, "no memory for %d shards", ds->n_shards);
    for (int i = 0; i < ds->n_shards && !bad; i++)
        bad = try_add_shard(ds, i, vocab_size, i % size == rank, fault) != 0 ||
              check_twice(ds, i, seen, fault) != 0;
    free(seen);
    if (bad) return -1;
    if (ds->n_shards == 0)
        return fault_set(fault, CODE_DATA, "no shard is left: all of them are broken");
    return try_number_samples(ds, fault);
}

static void agree(const struct mesh *mesh, const char *what, bool ok, const struct fault *fault)
{
    char why[sizeof fault->why + 64];

    snprintf(why, sizeof why, "%s data: %s", what, fault->why);
    if (mesh)
        AGREE(MPI_COMM_WORLD, ok, fault->code, why);
    else if (!ok)
        DIE(fault->code, "%s", why);
}

void dataset_agree(const struct dataset *ds, const struct mesh *mesh, bool ok,
                   const struct fault *fault)
{
    agree(mesh, ds->what, ok, fault);
}

static void compare_over_ranks(const struct dataset *ds, const struct mesh *mesh)
{
    struct fault fault = {0};
    const uint64_t mine[3] = {ds->fingerprint, (uint64_t)ds->n_shards, (uint64_t)ds->n_tokens};
    uint64_t first[3];

    memcpy(first, mine, sizeof first);
    mesh_broadcast(first, sizeof first, "broadcast of a fingerprint");
    const bool ok = memcmp(first, mine, sizeof mine) == 0;
    if (!ok)
        fault_set(&fault, CODE_DATA,
                  "%s data differ between ranks: fingerprint 0x%016lx on rank %d (%lu "
                  "shards, %lu tokens), 0x%016lx on rank 0 (%lu shards, %lu tokens)",
                  ds->what, (unsigned long)mine[0], mesh->rank, (unsigned long)mine[1],
                  (unsigned long)mine[2], (unsigned long)first[0], (unsigned long)first[1],
                  (unsigned long)first[2]);
    AGREE(MPI_COMM_WORLD, ok, fault.code, fault.why);
}

/* Shards can only be named by their place in the list when all ranks have as many. */
static void compare_counts(const struct dataset *ds, const struct mesh *mesh)
{
    struct fault fault = {0};
    int n = ds->n_shards;

    mesh_broadcast(&n, sizeof n, "broadcast of a count");
    if (n != ds->n_shards)
        fault_set(&fault, CODE_DATA, "ranks see different shards: %d on rank %d, %d on rank 0",
                  ds->n_shards, mesh->rank, n);
    agree(mesh, ds->what, n == ds->n_shards, &fault);
}

/* A shard that is broken on any rank is left out on all of them; the lowest rank that found it so
 * says it. Frees the messages. */
static void leave_out_broken(struct dataset *ds, char **why, const struct mesh *mesh)
{
    const int n = ds->n_shards, rank = mesh ? mesh->rank : 0;
    int *speaker = malloc((size_t)n * sizeof *speaker);

    CHECK(speaker, "no memory for %d shards", n);
    for (int i = 0; i < n; i++) speaker[i] = why[i] ? rank : INT_MAX;
    if (mesh) {
        compare_counts(ds, mesh);
        mesh_combine(speaker, n, MPI_MIN, "agreement on broken shards");
    }
    ds->n_shards = 0;
    for (int i = 0; i < n; i++) {
        if (speaker[i] == rank)
            fprintf(stderr, "warning %s data, rank %d: %s; left out (data.on_bad_shard skip)\n",
                    ds->what, rank, why[i]);
        if (speaker[i] == INT_MAX) {
            ds->source_of[ds->n_shards] = ds->source_of[i];
            ds->shard[ds->n_shards++] = ds->shard[i];
        } else {
            shard_close(&ds->shard[i]);
        }
        free(why[i]);
    }
    free(speaker);
    free(why);
}

struct dataset *dataset_open(const struct data_sources *sources, const char *what,
                             int sequence_length, int vocab_size, bool skip_bad,
                             const struct mesh *mesh)
{
    struct fault fault = {0};
    struct names names = {0};

    CHECK(sequence_length >= 1 && vocab_size >= 1, "sequence length %d, vocabulary %d",
          sequence_length, vocab_size);
    agree(mesh, what, names_try_list(&names, sources, &fault) == 0, &fault);
    struct dataset *ds = allocate(&names, sources->n);
    names_free(&names);
    ds->what = what;
    ds->T = sequence_length;
    dataset_set_weights(ds, sources);
    char **why = skip_bad ? calloc((size_t)ds->n_shards, sizeof *why) : NULL;
    CHECK(!skip_bad || why, "no memory for %d shards", ds->n_shards);
    agree(mesh, what, try_open_shards(ds, sources, mesh, why, &fault) == 0, &fault);
    if (why) leave_out_broken(ds, why, mesh);
    agree(mesh, what, try_fill(ds, vocab_size, mesh, &fault) == 0, &fault);
    if (mesh) compare_over_ranks(ds, mesh);
    return ds;
}

void dataset_close(struct dataset *ds)
{
    if (!ds) return;
    for (int i = ds->n_shards - 1; i >= 0 && !ds->is_cut; i--) shard_close(&ds->shard[i]);
    mem_free(ds);
}

int64_t dataset_tokens(const struct dataset *ds)
{
    return ds->n_tokens;
}
double dataset_token_bytes(const struct dataset *ds)
{
    double bytes = 0, tokens = 0;
    for (int i = 0; i < ds->n_shards; i++) {
        const struct shard_info *info = &ds->shard[i].info;
        if (info->text_bytes == 0) return 0;
        bytes += (double)info->text_bytes;
        tokens += (double)info->n_tokens;
    }
    return tokens > 0 ? bytes / tokens : 0;
}

int64_t dataset_documents(const struct dataset *ds)
{
    return ds->n_documents;
}
uint64_t dataset_tokenizer(const struct dataset *ds)
{
    const struct shard *known = dataset_known_tokenizer(ds, ds->n_shards);
    return known ? known->info.tokenizer_hash : 0;
}

/* What all shards that tell it have there. */
static int common_id(const struct dataset *ds, size_t offset)
{
    int id = -1;
    for (int i = 0; i < ds->n_shards; i++) {
        int32_t own;
        memcpy(&own, (const char *)&ds->shard[i].info + offset, sizeof own);
        if (own >= 0 && id >= 0 && own != id) return -1;
        if (own >= 0) id = own;
    }
    return id;
}

struct special_ids dataset_ids(const struct dataset *ds)
{
    return (struct special_ids){common_id(ds, offsetof(struct shard_info, bos_id)),
                                common_id(ds, offsetof(struct shard_info, eod_id)),
                                common_id(ds, offsetof(struct shard_info, pad_id))};
}

uint64_t dataset_fingerprint(const struct dataset *ds)
{
    return ds->fingerprint;
}

int dataset_shard_at(const struct dataset *ds, int64_t at)
{
    int low = 0, high = ds->n_shards - 1;

    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (ds->first[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
