/*
 * dataset.c - a list of shards as one stream of tokens. Opening is where a user's wrong files are
 * found: every rank opens every shard, the costly checks are divided among the ranks, and all must
 * see the same contents before the run goes on. The manual is data.h.
 */
#include "data/dataset.h"

#include "base/mem.h"
#include "data/order.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct names {
    char **at;
    int n, cap;
};

static void names_add(struct names *names, const char *dir, const char *name)
{
    const size_t bytes = strlen(dir) + strlen(name) + 2;

    if (names->n == names->cap) {
        names->cap = names->cap ? 2 * names->cap : 64;
        names->at = realloc(names->at, (size_t)names->cap * sizeof *names->at);
        CHECK(names->at, "no memory for %d file names", names->cap);
    }
    char *path = malloc(bytes);
    CHECK(path, "no memory for a file name of %zu bytes", bytes);
    snprintf(path, bytes, "%s%s%s", dir, *dir ? "/" : "", name);
    names->at[names->n++] = path;
}

static void names_free(struct names *names)
{
    for (int i = 0; i < names->n; i++) free(names->at[i]);
    free(names->at);
    memset(names, 0, sizeof *names);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b); /* bytes, whatever the locale */
}

static bool is_shard_name(const char *name)
{
    const size_t n = strlen(name), n_suffix = strlen(SHARD_SUFFIX);
    return name[0] != '.' && n > n_suffix && strcmp(name + n - n_suffix, SHARD_SUFFIX) == 0;
}

static int try_add_directory(struct names *names, const char *path, struct shard_fault *fault)
{
    const int n_before = names->n;
    struct dirent *entry;
    DIR *dir = opendir(path);

    if (!dir)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: cannot list: %s", path, strerror(errno));
    errno = 0;
    while ((entry = readdir(dir)))
        if (is_shard_name(entry->d_name)) names_add(names, path, entry->d_name);
    const int err = errno;
    closedir(dir);
    if (err)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: cannot list: %s", path, strerror(err));
    if (names->n == n_before)
        return shard_fault_set(fault, CODE_NO_INPUT,
                               "%s: no *" SHARD_SUFFIX " in this directory; dsv3-tokenize makes "
                               "shards",
                               path);
    qsort(names->at + n_before, (size_t)(names->n - n_before), sizeof *names->at, compare_names);
    return 0;
}

static int try_list(struct names *names, const struct path_list *paths, struct shard_fault *fault)
{
    struct stat st;

    for (int i = 0; i < paths->n; i++) {
        const char *path = paths->at[i];
        if (stat(path, &st) != 0)
            return shard_fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode))
            names_add(names, "", path);
        else if (try_add_directory(names, path, fault) != 0)
            return -1;
    }
    if (names->n > 0) return 0;
    return shard_fault_set(fault, CODE_NO_INPUT, "no shards: the list of files is empty");
}

/* A shard that is reached by two ways would be trained on twice an epoch without anyone asking. */
static int check_twice(const struct dataset *ds, int i, struct stat *seen,
                       struct shard_fault *fault)
{
    if (fstat(ds->shard[i].fd, &seen[i]) != 0)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: %s", ds->shard[i].path, strerror(errno));
    for (int k = 0; k < i; k++)
        if (seen[k].st_dev == seen[i].st_dev && seen[k].st_ino == seen[i].st_ino)
            return shard_fault_set(fault, CODE_DATA, "%s and %s are the same file",
                                   ds->shard[k].path, ds->shard[i].path);
    return 0;
}

/* An open shard must fit the model and the shards before it. */
static int try_add_shard(struct dataset *ds, int i, int vocab_size, struct shard_fault *fault)
{
    struct shard *shard = &ds->shard[i];
    const struct shard_header *h = &shard->header;

    shard->vocab = (uint64_t)vocab_size;
    if (h->max_id >= shard->vocab)
        return shard_fault_set(
            fault, CODE_DATA,
            "%s: largest id %u (header, byte %zu), vocabulary %d (model.vocab_size): ids must be "
            "below it; the shard was made with tokenizer \"%s\", vocabulary %lu",
            shard->path, h->max_id, offsetof(struct shard_header, max_id), vocab_size, h->tokenizer,
            (unsigned long)h->vocab_size);
    if (i > 0 && h->tokenizer_hash != ds->shard[0].header.tokenizer_hash)
        return shard_fault_set(
            fault, CODE_DATA, "%s: tokenizer \"%s\" (0x%016lx), but %s has \"%s\" (0x%016lx)",
            shard->path, h->tokenizer, (unsigned long)h->tokenizer_hash, ds->shard[0].path,
            ds->shard[0].header.tokenizer, (unsigned long)ds->shard[0].header.tokenizer_hash);
    ds->fingerprint = shard_fingerprint(h, ds->fingerprint);
    ds->n_documents += (int64_t)h->n_documents;
    ds->n_tokens += (int64_t)h->n_tokens;
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

/* One block: the struct, the shards, the sums, the names. */
static struct dataset *allocate(const struct names *names)
{
    size_t name_bytes = 0;
    for (int i = 0; i < names->n; i++) name_bytes += strlen(names->at[i]) + 1;
    const size_t n = (size_t)names->n;
    struct dataset *ds = mem_alloc(
        sizeof *ds + n * sizeof *ds->shard + (n + 1) * sizeof *ds->first + name_bytes, "dataset");

    ds->n_shards = names->n;
    ds->shard = (struct shard *)(ds + 1);
    ds->first = (int64_t *)(ds->shard + n);
    char *text = (char *)(ds->first + n + 1);
    for (int i = 0; i < names->n; i++) {
        ds->shard[i].path = strcpy(text, names->at[i]);
        ds->shard[i].fd = -1;
        text += strlen(text) + 1;
    }
    return ds;
}

/* Opens every shard and reads the whole index of every n-th, n being the number of ranks. With why
 * [n_shards], which takes a copy of its message, a broken shard is not yet a fault. */
static int try_open_shards(struct dataset *ds, const struct mesh *mesh, char **why,
                           struct shard_fault *fault)
{
    const int rank = mesh ? mesh->rank : 0, size = mesh ? mesh->size : 1;

    raise_open_files();
    for (int i = 0; i < ds->n_shards; i++) {
        struct shard *shard = &ds->shard[i];
        if (shard_try_open(shard, shard->path, fault) == 0 &&
            (i % size != rank || shard_try_check_index(shard, fault) == 0))
            continue;
        if (!why || fault->code != CODE_DATA) return -1;
        why[i] = strdup(fault->why);
        CHECK(why[i], "no memory for a message");
    }
    return 0;
}

static int try_fill(struct dataset *ds, int vocab_size, struct shard_fault *fault)
{
    struct stat *seen = calloc((size_t)ds->n_shards + 1, sizeof *seen);
    int bad = 0;

    CHECK(seen, "no memory for %d shards", ds->n_shards);
    for (int i = 0; i < ds->n_shards && !bad; i++)
        bad = try_add_shard(ds, i, vocab_size, fault) != 0 || check_twice(ds, i, seen, fault) != 0;
    free(seen);
    if (bad) return -1;
    if (ds->n_shards == 0)
        return shard_fault_set(fault, CODE_DATA, "no shard is left: all of them are broken");
    ds->n_samples = (ds->n_tokens - 1) / ds->T;
    if (ds->n_samples >= 1) return 0;
    return shard_fault_set(fault, CODE_DATA,
                           "%ld tokens in %d shard%s (first: %s), one sample takes %d "
                           "(data.sequence_length + 1)",
                           (long)ds->n_tokens, ds->n_shards, ds->n_shards > 1 ? "s" : "",
                           ds->shard[0].path, ds->T + 1);
}

/* The lowest rank with a fault says it and the job ends. Collective when mesh is not NULL. */
static void agree(const struct mesh *mesh, const char *what, bool ok,
                  const struct shard_fault *fault)
{
    char why[sizeof fault->why + 64];

    snprintf(why, sizeof why, "%s data: %s", what, fault->why);
    if (mesh)
        AGREE(MPI_COMM_WORLD, ok, fault->code, why);
    else if (!ok)
        DIE(fault->code, "%s", why);
}

static void compare_over_ranks(const struct dataset *ds, const struct mesh *mesh)
{
    struct shard_fault fault = {0};
    const uint64_t mine[3] = {ds->fingerprint, (uint64_t)ds->n_shards, (uint64_t)ds->n_tokens};
    uint64_t first[3];

    memcpy(first, mine, sizeof first);
    mesh_broadcast(first, sizeof first, "broadcast of a fingerprint");
    const bool ok = memcmp(first, mine, sizeof mine) == 0;
    if (!ok)
        shard_fault_set(&fault, CODE_DATA,
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
    struct shard_fault fault = {0};
    int n = ds->n_shards;

    MPI_CHECK(MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (n != ds->n_shards)
        shard_fault_set(&fault, CODE_DATA,
                        "ranks see different shards: %d on rank %d, %d on rank 0", ds->n_shards,
                        mesh->rank, n);
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
        MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, speaker, n, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    }
    ds->n_shards = 0;
    for (int i = 0; i < n; i++) {
        if (speaker[i] == rank)
            fprintf(stderr, "warning %s data, rank %d: %s; left out (data.on_bad_shard skip)\n",
                    ds->what, rank, why[i]);
        if (speaker[i] == INT_MAX)
            ds->shard[ds->n_shards++] = ds->shard[i];
        else
            shard_close(&ds->shard[i]);
        free(why[i]);
    }
    free(speaker);
    free(why);
}

struct dataset *dataset_open(const struct path_list *paths, const char *what, int sequence_length,
                             int vocab_size, bool skip_bad, const struct mesh *mesh)
{
    struct shard_fault fault = {0};
    struct names names = {0};

    CHECK(sequence_length >= 1 && vocab_size >= 1, "sequence length %d, vocabulary %d",
          sequence_length, vocab_size);
    agree(mesh, what, try_list(&names, paths, &fault) == 0, &fault);
    struct dataset *ds = allocate(&names);
    names_free(&names);
    ds->what = what;
    ds->T = sequence_length;
    char **why = skip_bad ? calloc((size_t)ds->n_shards, sizeof *why) : NULL;
    CHECK(!skip_bad || why, "no memory for %d shards", ds->n_shards);
    agree(mesh, what, try_open_shards(ds, mesh, why, &fault) == 0, &fault);
    if (why) leave_out_broken(ds, why, mesh);
    agree(mesh, what, try_fill(ds, vocab_size, &fault) == 0, &fault);
    if (mesh) compare_over_ranks(ds, mesh);
    return ds;
}

void dataset_close(struct dataset *ds)
{
    if (!ds) return;
    for (int i = ds->n_shards - 1; i >= 0; i--) shard_close(&ds->shard[i]);
    mem_free(ds);
}

int64_t dataset_samples(const struct dataset *ds)
{
    return ds->n_samples;
}
int64_t dataset_tokens(const struct dataset *ds)
{
    return ds->n_tokens;
}
int64_t dataset_documents(const struct dataset *ds)
{
    return ds->n_documents;
}
uint64_t dataset_fingerprint(const struct dataset *ds)
{
    return ds->fingerprint;
}

int64_t dataset_sample_at(const struct dataset *ds, uint64_t seed, bool shuffle, int64_t g)
{
    CHECK(g >= 0, "global sample number %ld", (long)g);
    const int64_t index = g % ds->n_samples;
    return shuffle ? order_permute(seed, g / ds->n_samples, ds->n_samples, index) : index;
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
