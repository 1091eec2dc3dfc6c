/* safetensors.c - reading; see safetensors.h. What a file says of itself is believed only as far as
 * its size allows. */
#include "safetensors.h"

#include "decode.h"
#include "foreign.h"

#include "ckpt/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct st_type types[] = {
    {"F32", ST_F32, 4},        {"BF16", ST_BF16, 2},         {"F16", ST_F16, 2},
    {"F8_E4M3", ST_E4M3, 1},   {"F8_E5M2", ST_NO_WEIGHT, 1}, {"F8_E8M0", ST_NO_WEIGHT, 1},
    {"BOOL", ST_NO_WEIGHT, 1}, {"U8", ST_NO_WEIGHT, 1},      {"I8", ST_NO_WEIGHT, 1},
    {"U16", ST_NO_WEIGHT, 2},  {"I16", ST_NO_WEIGHT, 2},     {"U32", ST_NO_WEIGHT, 4},
    {"I32", ST_NO_WEIGHT, 4},  {"U64", ST_NO_WEIGHT, 8},     {"I64", ST_NO_WEIGHT, 8},
    {"F64", ST_NO_WEIGHT, 8},  {"C64", ST_NO_WEIGHT, 8},
};

/* One file while its header is read. */
struct header {
    const char *path;
    int file;
    int64_t data, data_bytes; /* where the tensors' bytes begin, and how many there are */
    json_t *root;
    struct fault *fault;
};

static const struct st_type *find_type(const char *name)
{
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    return NULL;
}

static int set_shape(struct st_tensor *t, const struct header *h, const json_t *shape)
{
    const size_t n_dims = json_array_size(shape);
    if (!json_is_array(shape) || n_dims > ST_DIMS)
        return fault_set(h->fault, CODE_DATA,
                         "%s: %s: shape: found %s%zu, expected a list of at "
                         "most %d sizes",
                         h->path, t->name, json_is_array(shape) ? "" : "no list, ", n_dims,
                         ST_DIMS);
    t->n_dims = (int)n_dims;
    t->n = 1;
    for (size_t d = 0; d < n_dims; d++) {
        const json_t *size = json_array_get(shape, d);
        t->dim[d] = json_is_integer(size) ? json_integer_value(size) : -1;
        /* below 2^56, so that bytes do not leave 64 bits either */
        if (t->dim[d] < 0 || __builtin_mul_overflow(t->n, t->dim[d], &t->n) || t->n >> 56)
            return fault_set(h->fault, CODE_DATA,
                             "%s: %s: shape: found a size of %" PRId64 " in dimension %zu, "
                             "expected a count that a file can hold",
                             h->path, t->name, t->dim[d], d);
    }
    return 0;
}

/* The range, relative to the data, must be inside them and as long as type and shape want. */
static int set_range(struct st_tensor *t, const struct header *h, const json_t *offsets)
{
    const json_t *first = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(end))
        return fault_set(h->fault, CODE_DATA,
                         "%s: %s: data_offsets: expected a list of two numbers of bytes", h->path,
                         t->name);
    const int64_t from = json_integer_value(first), to = json_integer_value(end);
    if (from < 0 || to < from || to > h->data_bytes)
        return fault_set(h->fault, CODE_DATA,
                         "%s: %s: data_offsets: found %" PRId64 " to %" PRId64
                         ", expected a range inside the %" PRId64 " bytes behind the header",
                         h->path, t->name, from, to, h->data_bytes);
    if (to - from != t->n * t->type->bytes)
        return fault_set(h->fault, CODE_DATA,
                         "%s: %s: found %" PRId64 " bytes, expected %" PRId64 " = %" PRId64
                         " elements of %s",
                         h->path, t->name, to - from, t->n * t->type->bytes, t->n, t->type->name);
    t->offset = h->data + from;
    return 0;
}

static int set_tensor(struct st_tensor *t, const struct header *h, const char *name,
                      const json_t *value)
{
    *t = (struct st_tensor){.name = strdup(name), .file = h->file};
    CHECK(t->name, "no memory for a name");
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    t->type = find_type(dtype);
    if (!t->type)
        return fault_set(h->fault, CODE_DATA,
                         "%s: %.200s: dtype: found %.40s, expected one of F32, BF16, F16, F8_E4M3",
                         h->path, name, dtype ? dtype : "none");
    return set_shape(t, h, json_object_get(value, "shape")) ||
                   set_range(t, h, json_object_get(value, "data_offsets"))
               ? -1
               : 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n); /* empty ones first */
}

/* The n tensors of this file fill the data without overlap or hole. */
static int check_cover(struct st_tensor *t, int n, const struct header *h)
{
    int64_t at = h->data;
    qsort(t, (size_t)n, sizeof *t, by_offset);
    for (int i = 0; i < n; i++) {
        if (t[i].offset != at)
            return fault_set(h->fault, CODE_DATA,
                             "%s: byte %" PRId64 ": %s begins here, expected at byte %" PRId64
                             ", where the one before ends: they %s",
                             h->path, t[i].offset, t[i].name, at,
                             t[i].offset < at ? "overlap" : "leave a hole");
        at += t[i].n * t[i].type->bytes;
    }
    if (at == h->data + h->data_bytes) return 0;
    return fault_set(h->fault, CODE_DATA,
                     "%s: the last tensor ends at byte %" PRId64
                     ", expected the file's end, %" PRId64,
                     h->path, at, h->data + h->data_bytes);
}

/* Eight bytes and the JSON behind them. */
static int read_header(struct header *h, int fd, int64_t file_bytes)
{
    uint64_t n = 0;
    json_error_t error;
    if (file_bytes < 8) /* the format is little-endian, as all machines we build for are */
        return fault_set(h->fault, CODE_DATA, "%s: found %" PRId64 " bytes, expected a header",
                         h->path, file_bytes);
    if (io_try_read(fd, h->path, &n, 8, 0, h->fault)) return -1;
    if (n < 2 || n > ST_HEADER_BYTES || (int64_t)n > file_bytes - 8)
        return fault_set(h->fault, CODE_DATA,
                         "%s: byte 0: header of %" PRIu64 " bytes, expected 2 to %d in a file of "
                         "%" PRId64 " bytes",
                         h->path, n, ST_HEADER_BYTES, file_bytes);
    char *text = malloc(n);
    CHECK(text, "no memory for a header of %" PRIu64 " bytes", n);
    int bad = io_try_read(fd, h->path, text, (int64_t)n, 8, h->fault);
    if (!bad) {
        h->root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(h->root))
            bad = fault_set(h->fault, CODE_DATA, "%s: byte %d: header: %s", h->path,
                            8 + (h->root ? 0 : error.position),
                            h->root ? "expected a JSON object" : error.text);
    }
    free(text);
    h->data = 8 + (int64_t)n;
    h->data_bytes = file_bytes - h->data;
    return bad;
}

static int take_tensors(struct safetensors *st, struct header *h)
{
    const char *name;
    json_t *value;
    const size_t n = (size_t)st->n_tensors + json_object_size(h->root);
    struct st_tensor *grown = realloc(st->tensor, (n + 1) * sizeof *grown);
    CHECK(grown, "no memory for %zu tensors", n);
    st->tensor = grown;
    const int before = st->n_tensors;
    json_object_foreach(h->root, name, value)
    {
        if (!strcmp(name, "__metadata__")) continue;
        if (set_tensor(&st->tensor[st->n_tensors++], h, name, value)) return -1;
    }
    return check_cover(st->tensor + before, st->n_tensors - before, h);
}

static int add_file(struct safetensors *st, const char *dir, const char *name, struct fault *fault)
{
    struct header h = {.file = st->n_files, .fault = fault};
    int64_t bytes;
    char **grown = realloc(st->path, ((size_t)st->n_files + 1) * sizeof *grown);
    CHECK(grown, "no memory for %d paths", st->n_files + 1);
    st->path = grown;
    h.path = st->path[st->n_files++] = foreign_path(dir, name);
    const int fd = foreign_try_open(h.path, &bytes, fault);
    if (fd < 0) return -1;
    const int bad = read_header(&h, fd, bytes) || take_tensors(st, &h);
    json_decref(h.root);
    close(fd);
    return bad ? -1 : 0;
}

static int by_name(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of files in the map, each once, in order; new memory for the list. */
static int try_list_files(json_t *map, const char *where, const char ***names, int *n,
                          struct fault *fault)
{
    const char *tensor;
    json_t *value;
    int n_all = 0;
    *names = malloc((json_object_size(map) + 1) * sizeof **names);
    CHECK(*names, "no memory for the names of files");
    json_object_foreach(map, tensor, value)
    {
        const char *name = json_string_value(value);
        if (!name || !*name || strchr(name, '/'))
            return fault_set(fault, CODE_DATA,
                             "%s: weight_map: %.200s: found %.200s, expected the name of a file "
                             "beside this one",
                             where, tensor, name ? name : "no text");
        (*names)[n_all++] = name;
    }
    qsort(*names, (size_t)n_all, sizeof **names, compare_text);
    *n = 0;
    for (int i = 0; i < n_all; i++)
        if (i == 0 || strcmp((*names)[i], (*names)[*n - 1])) (*names)[(*n)++] = (*names)[i];
    return 0;
}

/* Every tensor is in the file that the map names, and the other way round. */
static int check_map(const struct safetensors *st, json_t *map, const char *where,
                     struct fault *fault)
{
    const char *name;
    json_t *value;
    for (int i = 0; i < st->n_tensors; i++) {
        const struct st_tensor *t = &st->tensor[i];
        const char *want = json_string_value(json_object_get(map, t->name));
        const char *slash = strrchr(st->path[t->file], '/');
        if (!want || strcmp(want, slash ? slash + 1 : st->path[t->file]))
            return fault_set(fault, CODE_DATA, "%s: holds %.200s, expected, as %s says, %.200s",
                             st->path[t->file], t->name, where, want ? want : "no such tensor");
    }
    json_object_foreach(map, name, value)
    {
        if (!safetensors_find(st, name))
            return fault_set(fault, CODE_DATA, "%s: weight_map: %.200s: not in %.200s", where, name,
                             json_string_value(value));
    }
    return 0;
}

static int open_indexed(struct safetensors *st, const char *dir, const char *where,
                        struct fault *fault)
{
    const char **names = NULL;
    int n = 0;
    json_t *root = foreign_try_json(where, ST_HEADER_BYTES, fault);
    if (!root) return -1;
    json_t *map = json_object_get(root, "weight_map");
    int bad = json_object_size(map) ? try_list_files(map, where, &names, &n, fault)
                                    : fault_set(fault, CODE_DATA,
                                                "%s: weight_map: found no tensors, expected an "
                                                "object of tensors and their files",
                                                where);
    for (int i = 0; i < n && !bad; i++) bad = add_file(st, dir, names[i], fault);
    if (!bad) {
        qsort(st->tensor, (size_t)st->n_tensors, sizeof *st->tensor, by_name);
        bad = check_map(st, map, where, fault);
    }
    free(names);
    json_decref(root);
    return bad;
}

int safetensors_try_open(struct safetensors *st, const char *dir, struct fault *fault)
{
    *st = (struct safetensors){.open_file = -1, .fd = -1};
    char *index = foreign_path(dir, ST_INDEX), *single = foreign_path(dir, ST_SINGLE);
    const bool is_indexed = !access(index, F_OK), is_single = !access(single, F_OK);
    int bad;
    if (is_indexed == is_single)
        bad = fault_set(fault, CODE_NO_INPUT, "%s: found %s %s and %s, expected one of them", dir,
                        is_single ? "both" : "none of", ST_SINGLE, ST_INDEX);
    else if (is_indexed)
        bad = open_indexed(st, dir, index, fault);
    else if (!(bad = add_file(st, dir, ST_SINGLE, fault)))
        qsort(st->tensor, (size_t)st->n_tensors, sizeof *st->tensor, by_name);
    free(index);
    free(single);
    return bad;
}

void safetensors_close(struct safetensors *st)
{
    for (int i = 0; i < st->n_tensors; i++) free((char *)st->tensor[i].name);
    for (int i = 0; i < st->n_files; i++) free(st->path[i]);
    if (st->open_file >= 0) close(st->fd);
    free(st->tensor);
    free(st->path);
    *st = (struct safetensors){.open_file = -1, .fd = -1};
}

const struct st_tensor *safetensors_find(const struct safetensors *st, const char *name)
{
    const struct st_tensor key = {.name = name};
    if (!st->n_tensors) return NULL;
    return bsearch(&key, st->tensor, (size_t)st->n_tensors, sizeof key, by_name);
}

int safetensors_try_read(struct safetensors *st, const struct st_tensor *t, int64_t first,
                         int64_t n, void *to, struct fault *fault)
{
    CHECK(first >= 0 && n >= 0 && first <= t->n - n,
          "%s: elements %" PRId64 " and %" PRId64 " more of %" PRId64, t->name, first, n, t->n);
    if (st->open_file != t->file) {
        int64_t bytes;
        if (st->open_file >= 0) close(st->fd);
        st->open_file = -1;
        st->fd = foreign_try_open(st->path[t->file], &bytes, fault);
        if (st->fd < 0) return -1;
        st->open_file = t->file;
    }
    const int64_t size = t->type->bytes;
    return io_try_read(st->fd, st->path[t->file], to, n * size, t->offset + first * size, fault);
}

int safetensors_try_read_f32(struct safetensors *st, const struct st_tensor *t, int64_t first,
                             int64_t n, float *to, struct fault *fault)
{
    CHECK(t->type->kind != ST_NO_WEIGHT, "%s: %s is no weight", t->name, t->type->name);
    /* The narrow values lie at the end of the room for the wide ones, and are overtaken last. */
    char *narrow = (char *)to + n * (4 - t->type->bytes);
    if (safetensors_try_read(st, t, first, n, narrow, fault)) return -1;
    st_decode(to, narrow, t->type->kind, n);
    return 0;
}
