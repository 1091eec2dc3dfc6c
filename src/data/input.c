/* input.c - reading files, packed or not; see input.h. */
#include "data/input.h"

#include "base/file.h"
#include "data/unpack.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

struct input {
    char **path;
    int n_files, cap, file; /* file: the one being read */
    int fd;                 /* -1: none open */
    int spool;              /* copy of standard input, -1: none */
    int64_t file_bytes, done_bytes;
    struct unpacker *unpacker;
    const char *from, *end; /* what is read and not handed out or unpacked yet */
    char read_buffer[BUFFER_BYTES], buffer[BUFFER_BYTES];
};

static void add_file(struct input *in, const char *path, int64_t bytes)
{
    if (in->n_files == in->cap) {
        in->cap = in->cap ? 2 * in->cap : 64;
        in->path = realloc(in->path, (size_t)in->cap * sizeof *in->path);
        CHECK(in->path, "no memory for %d file names", in->cap);
    }
    in->path[in->n_files] = strdup(path);
    CHECK(in->path[in->n_files], "no memory for the file name %s", path);
    in->n_files++;
    in->file_bytes += bytes;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int try_add_tree(struct input *in, const char *path, struct fault *fault)
{
    char *const roots[] = {(char *)path, NULL};
    const int n_before = in->n_files;
    FTSENT *entry;
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    int bad = 0;

    CHECK(tree, "%s: %s", path, strerror(errno));
    while (!bad && (entry = fts_read(tree))) {
        const bool hidden = entry->fts_level > 0 && entry->fts_name[0] == '.';
        if (hidden)
            fts_set(tree, entry, FTS_SKIP);
        else if (entry->fts_info == FTS_F)
            add_file(in, entry->fts_path, entry->fts_statp->st_size);
        else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
                 entry->fts_info == FTS_NS || entry->fts_info == FTS_SLNONE)
            bad = fault_set(fault, CODE_NO_INPUT, "%s: %s", entry->fts_path,
                            entry->fts_errno ? strerror(entry->fts_errno) : "dangling link");
        else if (entry->fts_info == FTS_DC)
            bad = fault_set(fault, CODE_NO_INPUT, "%s: a link to a directory above it",
                            entry->fts_path);
    }
    fts_close(tree);
    if (bad) return -1;
    if (in->n_files == n_before)
        return fault_set(fault, CODE_NO_INPUT, "%s: no files in this directory", path);
    qsort(in->path + n_before, (size_t)(in->n_files - n_before), sizeof *in->path, compare_paths);
    return 0;
}

/* The copy has no name, so nothing is left behind whatever happens. */
static int try_spool(struct input *in, struct fault *fault)
{
    FILE *copy = tmpfile();
    ssize_t n;

    if (!copy) return fault_set(fault, CODE_IO, "temporary file: %s", strerror(errno));
    while ((n = read(STDIN_FILENO, in->buffer, BUFFER_BYTES)) > 0) {
        in->file_bytes += n;
        if (fwrite(in->buffer, 1, (size_t)n, copy) != (size_t)n) break;
    }
    const bool ok = n == 0 && fflush(copy) == 0;
    if (ok) in->spool = dup(fileno(copy));
    const int err = errno;
    fclose(copy);
    if (ok && in->spool >= 0) return 0;
    return fault_set(fault, CODE_IO, "copying standard input to a temporary file: %s",
                     strerror(err));
}

static int try_add(struct input *in, const char *path, bool repeatable, struct fault *fault);

/* What matches a pattern of the shell, in bytewise order: the locale is that of C. */
static int try_add_matches(struct input *in, const char *pattern, bool repeatable,
                           struct fault *fault)
{
    glob_t found;
    const int code = glob(pattern, GLOB_ERR, NULL, &found);
    int bad = 0;

    CHECK(code != GLOB_NOSPACE, "no memory for the files that %s matches", pattern);
    for (size_t i = 0; code == 0 && i < found.gl_pathc && !bad; i++)
        bad = try_add(in, found.gl_pathv[i], repeatable, fault);
    globfree(&found);
    if (code == 0) return bad;
    return fault_set(fault, CODE_NO_INPUT, "%s: %s", pattern,
                     code == GLOB_NOMATCH ? "no file matches" : "a directory cannot be read");
}

static int try_add(struct input *in, const char *path, bool repeatable, struct fault *fault)
{
    struct stat st;

    if (strcmp(path, "-") == 0) {
        for (int i = 0; i < in->n_files; i++)
            if (strcmp(in->path[i], "-") == 0)
                return fault_set(fault, CODE_USAGE, "standard input is named twice");
        add_file(in, path, 0);
        return repeatable ? try_spool(in, fault) : 0;
    }
    if (strpbrk(path, "*?[") && access(path, F_OK) != 0)
        return try_add_matches(in, path, repeatable, fault);
    if (stat(path, &st) != 0)
        return fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return try_add_tree(in, path, fault);
    if (!S_ISREG(st.st_mode))
        return fault_set(fault, CODE_NO_INPUT,
                         "%s: not a regular file; pipes are read from standard input: -", path);
    add_file(in, path, st.st_size);
    return 0;
}

struct input *input_try_open(char *const *paths, int n, bool repeatable, struct fault *fault)
{
    struct input *in = calloc(1, sizeof *in);
    CHECK(in, "no memory for reading text");

    in->fd = in->spool = -1;
    in->unpacker = unpacker_init();
    for (int i = 0; i < n; i++)
        if (try_add(in, paths[i], repeatable, fault) != 0) {
            input_close(in);
            return NULL;
        }
    return in;
}

static void close_file(struct input *in)
{
    if (in->fd > STDIN_FILENO && in->fd != in->spool) close(in->fd);
    in->fd = -1;
}

void input_close(struct input *in)
{
    if (!in) return;
    close_file(in);
    if (in->spool >= 0) close(in->spool);
    unpacker_free(in->unpacker);
    for (int i = 0; i < in->n_files; i++) free(in->path[i]);
    free(in->path);
    free(in);
}

void input_rewind(struct input *in)
{
    close_file(in);
    in->file = 0;
    in->done_bytes = 0;
}

const char *input_path(const struct input *in)
{
    return in->file < in->n_files ? in->path[in->file] : NULL;
}

int input_file(const struct input *in)
{
    return in->file;
}

void input_next_file(struct input *in)
{
    close_file(in);
    in->file++;
}

static int try_open_file(struct input *in, struct fault *fault)
{
    const char *path = in->path[in->file], *why = NULL;
    struct stat st;

    if (strcmp(path, "-") != 0)
        in->fd = file_open(path, &st, &why);
    else if (in->spool < 0)
        in->fd = STDIN_FILENO;
    else if (lseek(in->spool, 0, SEEK_SET) == 0)
        in->fd = in->spool;
    if (in->fd >= 0) return 0;
    return fault_set(fault, CODE_NO_INPUT, "%s: %s", path, why ? why : strerror(errno));
}

/* More bytes of the file, behind those that are there. 1: there are; 0: it has ended; -1: fault. */
static int try_fill(struct input *in, struct fault *fault)
{
    char *to = in->read_buffer + (in->end - in->read_buffer);
    ssize_t got;
    do got = read(in->fd, to, (size_t)(in->read_buffer + BUFFER_BYTES - to));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return fault_set(fault, CODE_NO_INPUT, "%s: reading: %s", in->path[in->file],
                         strerror(errno));
    in->done_bytes += got;
    in->end += got;
    return got > 0;
}

/* The first bytes of a file, and what they tell. */
static int try_begin(struct input *in, struct fault *fault)
{
    int more = 1;

    in->from = in->read_buffer;
    in->end = in->read_buffer;
    while (more > 0 && in->end - in->from < UNPACK_HEAD_BYTES) more = try_fill(in, fault);
    if (more < 0) return -1;
    return unpacker_try_begin(in->unpacker, in->path[in->file], in->from, in->end - in->from,
                              fault);
}

static int try_unpack(struct input *in, const char **bytes, int64_t *n, struct fault *fault)
{
    for (;;) {
        *n = unpacker_try(in->unpacker, &in->from, in->end, in->buffer, BUFFER_BYTES, fault);
        *bytes = in->buffer;
        if (*n != 0) return *n > 0 ? 1 : -1;
        in->from = in->end = in->read_buffer;
        const int more = try_fill(in, fault);
        if (more < 0) return -1;
        if (!more) return unpacker_try_end(in->unpacker, fault);
    }
}

int input_try_read(struct input *in, const char **bytes, int64_t *n, struct fault *fault)
{
    if (in->fd < 0 && (try_open_file(in, fault) != 0 || try_begin(in, fault) != 0)) return -1;
    if (unpacker_is_packed(in->unpacker)) return try_unpack(in, bytes, n, fault);
    if (in->from == in->end) {
        in->from = in->end = in->read_buffer;
        const int more = try_fill(in, fault);
        if (more <= 0) return more;
    }
    *bytes = in->from;
    *n = in->end - in->from;
    in->from = in->end;
    return 1;
}

int64_t input_file_bytes(const struct input *in)
{
    return in->file_bytes;
}
int64_t input_done_bytes(const struct input *in)
{
    return in->done_bytes;
}
