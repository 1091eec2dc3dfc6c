/* names.c - listing the files of a dataset; see names.h. */
#include "data/names.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* dir/name, or without dir name, and suffix. */
static void names_add(struct names *names, const char *dir, const char *name, const char *suffix)
{
    const size_t bytes = strlen(dir) + strlen(name) + strlen(suffix) + 2;

    if (names->n == names->cap) {
        names->cap = names->cap ? 2 * names->cap : 64;
        names->at = realloc(names->at, (size_t)names->cap * sizeof *names->at);
        CHECK(names->at, "no memory for %d file names", names->cap);
    }
    char *path = malloc(bytes);
    CHECK(path, "no memory for a file name of %zu bytes", bytes);
    snprintf(path, bytes, "%s%s%s%s", dir, *dir ? "/" : "", name, suffix);
    names->at[names->n++] = path;
}

void names_free(struct names *names)
{
    for (int i = 0; i < names->n; i++) free(names->at[i]);
    free(names->at);
    memset(names, 0, sizeof *names);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b); /* bytes, whatever the locale */
}

static int try_add_directory(struct names *names, const char *path, enum data_format format,
                             struct fault *fault)
{
    const int n_before = names->n;
    struct dirent *entry;
    DIR *dir = opendir(path);

    if (!dir) return fault_set(fault, CODE_NO_INPUT, "%s: cannot list: %s", path, strerror(errno));
    errno = 0;
    while ((entry = readdir(dir)))
        if (shard_is_name(entry->d_name, format)) names_add(names, path, entry->d_name, "");
    const int err = errno;
    closedir(dir);
    if (err) return fault_set(fault, CODE_NO_INPUT, "%s: cannot list: %s", path, strerror(err));
    if (names->n == n_before)
        return fault_set(fault, CODE_NO_INPUT,
                         "%s: no %s in this directory; dsv3-tokenize makes shards", path,
                         shard_names(format));
    qsort(names->at + n_before, (size_t)(names->n - n_before), sizeof *names->at, compare_names);
    return 0;
}

/* Megatron's programs name NAME.bin and NAME.idx by NAME. */
static bool is_prefix(const char *path)
{
    char bin[4096];
    const int n = snprintf(bin, sizeof bin, "%s.bin", path);
    return n > 0 && n < (int)sizeof bin && access(path, F_OK) != 0 && access(bin, F_OK) == 0;
}

int names_try_add(struct names *names, const char *path, enum data_format format,
                  struct fault *fault)
{
    struct stat st;

    if (is_prefix(path))
        names_add(names, "", path, ".bin");
    else if (stat(path, &st) != 0)
        return fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        return try_add_directory(names, path, format, fault);
    else
        names_add(names, "", path, "");
    return 0;
}

static int try_list_source(struct names *names, const struct data_source *source,
                           struct fault *fault)
{
    struct file_op op;
    int bad = 0;

    for (int i = 0; i < source->n_paths && !bad; i++) {
        file_begin(&op, "listing", source->path[i]);
        bad = names_try_add(names, source->path[i], source->format, fault);
        file_end(&op);
    }
    return bad;
}

int names_try_list(struct names *names, const struct data_sources *sources, struct fault *fault)
{
    for (int s = 0; s < sources->n; s++) {
        names->n_before[s] = names->n;
        if (try_list_source(names, &sources->at[s], fault) != 0) return -1;
    }
    names->n_before[sources->n] = names->n;
    if (names->n > 0) return 0;
    return fault_set(fault, CODE_NO_INPUT, "no shards: the list of files is empty");
}
