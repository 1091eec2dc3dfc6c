/* text.c - reading text and finding where documents end; see text.h. */
#include "data/text.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct text {
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

static void add_file(struct text *text, const char *path, int64_t bytes)
{
    if (text->n_files == text->cap) {
        text->cap = text->cap ? 2 * text->cap : 64;
        text->path = realloc(text->path, (size_t)text->cap * sizeof *text->path);
        CHECK(text->path, "no memory for %d file names", text->cap);
    }
    text->path[text->n_files] = strdup(path);
    CHECK(text->path[text->n_files], "no memory for the file name %s", path);
    text->n_files++;
    text->file_bytes += bytes;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int try_add_tree(struct text *text, const char *path, struct shard_fault *fault)
{
    char *const roots[] = {(char *)path, NULL};
    const int n_before = text->n_files;
    FTSENT *entry;
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    int bad = 0;

    CHECK(tree, "%s: %s", path, strerror(errno));
    while (!bad && (entry = fts_read(tree))) {
        const bool hidden = entry->fts_level > 0 && entry->fts_name[0] == '.';
        if (hidden)
            fts_set(tree, entry, FTS_SKIP);
        else if (entry->fts_info == FTS_F)
            add_file(text, entry->fts_path, entry->fts_statp->st_size);
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
    if (text->n_files == n_before)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: no files in this directory", path);
    qsort(text->path + n_before, (size_t)(text->n_files - n_before), sizeof *text->path,
          compare_paths);
    return 0;
}

/* The copy has no name, so nothing is left behind whatever happens. */
static int try_spool(struct text *text, struct shard_fault *fault)
{
    FILE *copy = tmpfile();
    ssize_t n;

    if (!copy) return shard_fault_set(fault, CODE_IO, "temporary file: %s", strerror(errno));
    while ((n = read(STDIN_FILENO, text->buffer, BUFFER_BYTES)) > 0) {
        text->file_bytes += n;
        if (fwrite(text->buffer, 1, (size_t)n, copy) != (size_t)n) break;
    }
    const bool ok = n == 0 && fflush(copy) == 0;
    if (ok) text->spool = dup(fileno(copy));
    const int err = errno;
    fclose(copy);
    if (ok && text->spool >= 0) return 0;
    return shard_fault_set(fault, CODE_IO, "copying standard input to a temporary file: %s",
                           strerror(err));
}

static int try_add(struct text *text, const char *path, bool repeatable, struct shard_fault *fault)
{
    struct stat st;

    if (strcmp(path, "-") == 0) {
        for (int i = 0; i < text->n_files; i++)
            if (strcmp(text->path[i], "-") == 0)
                return shard_fault_set(fault, CODE_USAGE, "standard input is named twice");
        add_file(text, path, 0);
        return repeatable ? try_spool(text, fault) : 0;
    }
    if (stat(path, &st) != 0)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return try_add_tree(text, path, fault);
    if (repeatable && !S_ISREG(st.st_mode))
        return shard_fault_set(fault, CODE_NO_INPUT,
                               "%s: not a regular file, so it cannot be read twice; give it on "
                               "standard input",
                               path);
    add_file(text, path, st.st_size);
    return 0;
}

struct text *text_try_open(char *const *paths, int n, const char *separator, bool repeatable,
                           struct shard_fault *fault)
{
    struct text *text = calloc(1, sizeof *text);
    CHECK(text, "no memory for a text buffer");

    text->fd = text->spool = -1;
    text->separator = separator;
    text->n_separator = separator ? (int)strlen(separator) : 0;
    for (int i = 0; i < n; i++)
        if (try_add(text, paths[i], repeatable, fault) != 0) {
            text_close(text);
            return NULL;
        }
    text_rewind(text);
    return text;
}

static void close_file(struct text *text)
{
    if (text->fd > STDIN_FILENO && text->fd != text->spool) close(text->fd);
    text->fd = -1;
}

void text_close(struct text *text)
{
    if (!text) return;
    close_file(text);
    if (text->spool >= 0) close(text->spool);
    for (int i = 0; i < text->n_files; i++) free(text->path[i]);
    free(text->path);
    free(text);
}

static void begin_line(struct text *text)
{
    text->in_line = text->separator == NULL;
    text->matched = 0;
}

void text_rewind(struct text *text)
{
    close_file(text);
    text->file = 0;
    text->at = text->n = text->done_bytes = 0;
    begin_line(text);
}

static int try_open_file(struct text *text, struct shard_fault *fault)
{
    const char *path = text->path[text->file];

    if (strcmp(path, "-") != 0)
        text->fd = open(path, O_RDONLY | O_CLOEXEC);
    else if (text->spool < 0)
        text->fd = STDIN_FILENO;
    else if (lseek(text->spool, 0, SEEK_SET) == 0)
        text->fd = text->spool;
    if (text->fd >= 0) return 0;
    return shard_fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
}

/* 1: there is more in the buffer, 0: the file has ended, -1: fault. */
static int refill(struct text *text, struct shard_fault *fault)
{
    ssize_t n;

    if (text->fd < 0 && try_open_file(text, fault) != 0) return -1;
    do n = read(text->fd, text->buffer, BUFFER_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return shard_fault_set(fault, CODE_NO_INPUT, "%s: reading: %s", text->path[text->file],
                               strerror(errno));
    text->at = 0;
    text->n = n;
    text->done_bytes += n;
    return n > 0;
}

/* Hands out the start of a line that was held back because it looked like the separator. */
static enum text_event give_back(struct text *text, const char **bytes, int64_t *n)
{
    *bytes = text->separator;
    *n = text->matched;
    text->in_line = true;
    text->matched = 0;
    return TEXT_BYTES;
}

/* The rest of the line, and all lines after it in the buffer that cannot be the separator. */
static enum text_event give_lines(struct text *text, const char **bytes, int64_t *n)
{
    const char *begin = text->buffer + text->at, *end = text->buffer + text->n, *at = begin;

    while (text->separator && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) break;
        at = newline + 1;
        if (at == end || *at == (text->n_separator ? text->separator[0] : '\n')) {
            begin_line(text);
            end = at;
        }
    }
    text->at = end - text->buffer;
    *bytes = begin;
    *n = end - begin;
    return TEXT_BYTES;
}

static enum text_event end_file(struct text *text)
{
    close_file(text);
    text->file++;
    begin_line(text);
    return TEXT_DOCUMENT_END;
}

enum text_event text_next(struct text *text, const char **bytes, int64_t *n,
                          struct shard_fault *fault)
{
    while (text->file < text->n_files) {
        if (text->at == text->n) {
            const int more = refill(text, fault);
            if (more < 0) return TEXT_FAULT;
            /* A last line without newline is the separator only when all of it is there. */
            if (!more && text->matched > 0 && text->matched < text->n_separator)
                return give_back(text, bytes, n);
            if (!more) return end_file(text);
        }
        if (text->in_line) return give_lines(text, bytes, n);
        const char next = text->buffer[text->at];
        if (text->matched < text->n_separator && next == text->separator[text->matched]) {
            text->matched++;
            text->at++;
        } else if (text->matched == text->n_separator && next == '\n') {
            text->at++;
            begin_line(text);
            return TEXT_DOCUMENT_END;
        } else if (text->matched > 0) {
            return give_back(text, bytes, n);
        } else {
            text->in_line = true;
        }
    }
    return TEXT_END;
}

int64_t text_file_bytes(const struct text *text)
{
    return text->file_bytes;
}
int64_t text_done_bytes(const struct text *text)
{
    return text->done_bytes;
}
int text_files(const struct text *text)
{
    return text->n_files;
}
