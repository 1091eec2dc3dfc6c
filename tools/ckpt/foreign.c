/* foreign.c - see foreign.h. */
#include "foreign.h"

#include "ckpt/io.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *foreign_path(const char *dir, const char *name)
{
    const size_t bytes = strlen(dir) + strlen(name) + 2;
    char *path = malloc(bytes);
    CHECK(path, "no memory for a path");
    snprintf(path, bytes, "%s/%s", dir, name);
    return path;
}

int foreign_try_open(const char *path, int64_t *bytes, struct fault *fault)
{
    struct stat st;
    const int fd = io_try_open(path, &st, fault);
    *bytes = fd < 0 ? 0 : st.st_size;
    return fd;
}

json_t *foreign_try_json(const char *path, int64_t most, struct fault *fault)
{
    int64_t bytes;
    json_error_t error;
    char *text = io_try_read_file(path, most, &bytes, fault);
    if (!text) return NULL;
    json_t *root = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (json_is_object(root)) return root;
    fault_set(fault, CODE_DATA, "%s:%d:%d: %s", path, root ? 1 : error.line,
              root ? 1 : error.column, root ? "found no JSON object" : error.text);
    json_decref(root);
    return NULL;
}
