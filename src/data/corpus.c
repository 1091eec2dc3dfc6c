/* corpus.c - reading text and finding where documents end; see corpus.h. */
#include "data/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct corpus {
    char **path;
    int n_files, cap, file; /* file: the one being read */
    int fd;                 /* -1: none open */
    int spool;              /* copy of standard input, -1: none */
    int64_t file_bytes, done_bytes;

    const char *separator;
    int n_separator;
    bool in_line; /* the line read now is no separator, or there is none */
    int matched;  /* otherwise: bytes of it that equal the separator so far, not yet handed out */

    int64_t at, n; /* place and bytes in the buffer */
    char buffer[BUFFER_BYTES];
};

static void add_file(struct corpus *corpus, const char *path, int64_t bytes)
{
    if (corpus->n_files == corpus->cap) {
        corpus->cap = corpus->cap ? 2 * corpus->cap : 64;
        corpus->path = realloc(corpus->path, (size_t)corpus->cap * sizeof *corpus->path);
        CHECK(corpus->path, "no memory for %d file names", corpus->cap);
    }
    corpus->path[corpus->n_files] = strdup(path);
    CHECK(corpus->path[corpus->n_files], "no memory for the file name %s", path);
    corpus->n_files++;
    corpus->file_bytes += bytes;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int try_add_tree(struct corpus *corpus, const char *path, struct shard_fault *fault)
{
    char *const roots[] = {(char *)path, NULL};
    const int n_before = corpus->n_files;
    FTSENT *entry;
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    int bad = 0;

    CHECK(tree, "%s: %s", path, strerror(errno));
    while (!bad && (entry = fts_read(tree))) {
        const bool hidden = entry->fts_level > 0 && entry->fts_name[0] == '.';
        if (hidden)
            fts_set(tree, entry, FTS_SKIP);
        else if (entry->fts_info == FTS_F)
            add_file(corpus, entry->fts_path, entry->fts_statp->st_size);
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
                 entry->fts_info == FTS_NS || entry->fts_info == FTS_SLNONE)
            bad = shard_fault_set(fault, CODE_NO_INPUT, "%s: %s", entry->fts_path,
                                  entry->fts_errno ? strerror(entry->fts_errno) : "dangling link");
        else if (entry->fts_info == FTS_DC)
            bad = shard_fault_set(fault, CODE_NO_INPUT, "%s: a link to a directory above it",
                                  entry->fts_path);
    }
    fts_close(tree);
    if (bad) return -1;
    if (corpus->n_files == n_before)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: no files in this directory", path);
    qsort(corpus->path + n_before, (size_t)(corpus->n_files - n_before), sizeof *corpus->path,
          compare_paths);
    return 0;
}

/* The copy has no name, so nothing is left behind whatever happens. */
static int try_spool(struct corpus *corpus, struct shard_fault *fault)
{
    FILE *copy = tmpfile();
    ssize_t n;

    if (!copy) return shard_fault_set(fault, CODE_IO, "temporary file: %s", strerror(errno));
    while ((n = read(STDIN_FILENO, corpus->buffer, BUFFER_BYTES)) > 0) {
        corpus->file_bytes += n;
        if (fwrite(corpus->buffer, 1, (size_t)n, copy) != (size_t)n) break;
    }
    const bool ok = n == 0 && fflush(copy) == 0;
    if (ok) corpus->spool = dup(fileno(copy));
    const int err = errno;
    fclose(copy);
    if (ok && corpus->spool >= 0) return 0;
    return shard_fault_set(fault, CODE_IO, "copying standard input to a temporary file: %s",
                           strerror(err));
}

static int try_add(struct corpus *corpus, const char *path, bool repeatable,
                   struct shard_fault *fault)
{
    struct stat st;

    if (strcmp(path, "-") == 0) {
        for (int i = 0; i < corpus->n_files; i++)
            if (strcmp(corpus->path[i], "-") == 0)
                return shard_fault_set(fault, CODE_USAGE, "standard input is named twice");
        add_file(corpus, path, 0);
        return repeatable ? try_spool(corpus, fault) : 0;
    }
    if (stat(path, &st) != 0)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return try_add_tree(corpus, path, fault);
    if (repeatable && !S_ISREG(st.st_mode))
        return shard_fault_set(fault, CODE_NO_INPUT,
                               "%s: not a regular file, so it cannot be read twice; give it on "
                               "standard input",
                               path);
    add_file(corpus, path, st.st_size);
    return 0;
}

struct corpus *corpus_try_open(char *const *paths, int n, const char *separator, bool repeatable,
                               struct shard_fault *fault)
{
    struct corpus *corpus = calloc(1, sizeof *corpus);
    CHECK(corpus, "no memory for a text buffer");

    corpus->fd = corpus->spool = -1;
    corpus->separator = separator;
    corpus->n_separator = separator ? (int)strlen(separator) : 0;
    for (int i = 0; i < n; i++)
        if (try_add(corpus, paths[i], repeatable, fault) != 0) {
            corpus_close(corpus);
            return NULL;
        }
    corpus_rewind(corpus);
    return corpus;
}

static void close_file(struct corpus *corpus)
{
    if (corpus->fd > STDIN_FILENO && corpus->fd != corpus->spool) close(corpus->fd);
    corpus->fd = -1;
}

void corpus_close(struct corpus *corpus)
{
    if (!corpus) return;
    close_file(corpus);
    if (corpus->spool >= 0) close(corpus->spool);
    for (int i = 0; i < corpus->n_files; i++) free(corpus->path[i]);
    free(corpus->path);
    free(corpus);
}

static void begin_line(struct corpus *corpus)
{
    corpus->in_line = corpus->separator == NULL;
    corpus->matched = 0;
}

void corpus_rewind(struct corpus *corpus)
{
    close_file(corpus);
    corpus->file = 0;
    corpus->at = corpus->n = corpus->done_bytes = 0;
    begin_line(corpus);
}

static int try_open_file(struct corpus *corpus, struct shard_fault *fault)
{
    const char *path = corpus->path[corpus->file];

    if (strcmp(path, "-") != 0)
        corpus->fd = open(path, O_RDONLY | O_CLOEXEC);
    else if (corpus->spool < 0)
        corpus->fd = STDIN_FILENO;
    else if (lseek(corpus->spool, 0, SEEK_SET) == 0)
        corpus->fd = corpus->spool;
    if (corpus->fd >= 0) return 0;
    return shard_fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
}

/* 1: there is more in the buffer, 0: the file has ended, -1: fault. */
static int refill(struct corpus *corpus, struct shard_fault *fault)
{
    ssize_t n;

    if (corpus->fd < 0 && try_open_file(corpus, fault) != 0) return -1;
    do n = read(corpus->fd, corpus->buffer, BUFFER_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: reading: %s", corpus->path[corpus->file],
                               strerror(errno));
    corpus->at = 0;
    corpus->n = n;
    corpus->done_bytes += n;
    return n > 0;
}

/* Hands out the start of a line that was held back because it looked like the separator. */
static enum corpus_event give_back(struct corpus *corpus, const char **bytes, int64_t *n)
{
    *bytes = corpus->separator;
    *n = corpus->matched;
    corpus->in_line = true;
    corpus->matched = 0;
    return CORPUS_BYTES;
}

/* The rest of the line, and all lines after it in the buffer that cannot be the separator. */
static enum corpus_event give_lines(struct corpus *corpus, const char **bytes, int64_t *n)
{
    const char *begin = corpus->buffer + corpus->at, *end = corpus->buffer + corpus->n, *at = begin;

    while (corpus->separator && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) break;
        at = newline + 1;
        if (at == end || *at == (corpus->n_separator ? corpus->separator[0] : '\n')) {
            begin_line(corpus);
            end = at;
        }
    }
    corpus->at = end - corpus->buffer;
    *bytes = begin;
    *n = end - begin;
    return CORPUS_BYTES;
}

static enum corpus_event end_file(struct corpus *corpus)
{
    close_file(corpus);
    corpus->file++;
    begin_line(corpus);
    return CORPUS_DOCUMENT_END;
}

enum corpus_event corpus_next(struct corpus *corpus, const char **bytes, int64_t *n,
                              struct shard_fault *fault)
{
    while (corpus->file < corpus->n_files) {
        if (corpus->at == corpus->n) {
            const int more = refill(corpus, fault);
            if (more < 0) return CORPUS_FAULT;
            /* A last line without newline is the separator only when all of it is there. */
            if (!more && corpus->matched > 0 && corpus->matched < corpus->n_separator)
                return give_back(corpus, bytes, n);
            if (!more) return end_file(corpus);
        }
        if (corpus->in_line) return give_lines(corpus, bytes, n);
        const char next = corpus->buffer[corpus->at];
        if (corpus->matched < corpus->n_separator && next == corpus->separator[corpus->matched]) {
            corpus->matched++;
            corpus->at++;
        } else if (corpus->matched == corpus->n_separator && next == '\n') {
            corpus->at++;
            begin_line(corpus);
            return CORPUS_DOCUMENT_END;
        } else if (corpus->matched > 0) {
            return give_back(corpus, bytes, n);
        } else {
            corpus->in_line = true;
        }
    }
    return CORPUS_END;
}

int64_t corpus_file_bytes(const struct corpus *corpus)
{
    return corpus->file_bytes;
}
int64_t corpus_done_bytes(const struct corpus *corpus)
{
    return corpus->done_bytes;
}
int corpus_files(const struct corpus *corpus)
{
    return corpus->n_files;
}
