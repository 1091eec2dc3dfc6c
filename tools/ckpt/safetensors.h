/*
 * safetensors.h - weights as Hugging Face keeps them: one file or several, each 8 bytes with the
 * length n of a header (little-endian), n bytes of JSON that give every tensor's type, shape and
 * range of bytes, then these bytes, row-major and little-endian. model.safetensors.index.json says
 * which tensor is in which of several files. Source: the format's description in
 * huggingface/safetensors.
 *
 * Tensors are read and written in pieces: memory is that of the headers. Functions named *_try_*
 * return 0, or -1 with a fault that names the file and the place.
 */
#pragma once

#include "base/dtype.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define ST_SINGLE "model.safetensors"
#define ST_INDEX "model.safetensors.index.json"

enum { ST_DIMS = 4, ST_HEADER_BYTES = 100000000 /* the format's own limit */ };

enum st_kind { ST_F32, ST_BF16, ST_F16, ST_E4M3, ST_NO_WEIGHT /* integers and others */ };
struct st_type {
    const char *name; /* in the header */
    enum st_kind kind;
    int bytes;
};

struct st_tensor {
    const char *name;
    const struct st_type *type;
    int n_dims;
    int64_t dim[ST_DIMS];
    int64_t n; /* elements */
    int file;
    int64_t offset; /* from the beginning of the file */
};

struct safetensors {
    int n_files, n_tensors;
    char **path;              /* of each file */
    struct st_tensor *tensor; /* by name */
    int open_file, fd;        /* one file is open at a time; -1: none */
};

/* What is in directory dir: model.safetensors, or the files that the index names. Every tensor's
 * range is inside its file, ranges neither overlap nor leave a hole, no name comes twice, and index
 * and files agree. Free with safetensors_close, also after a fault. */
int safetensors_try_open(struct safetensors *st, const char *dir, struct fault *fault);
void safetensors_close(struct safetensors *st);

/* The tensor of that name, or NULL. */
const struct st_tensor *safetensors_find(const struct safetensors *st, const char *name);

/* n elements from element `first`: as they lie there, or as F32 (no ST_NO_WEIGHT; exact). */
int safetensors_try_read(struct safetensors *st, const struct st_tensor *t, int64_t first,
                         int64_t n, void *to, struct fault *fault);
int safetensors_try_read_f32(struct safetensors *st, const struct st_tensor *t, int64_t first,
                             int64_t n, float *to, struct fault *fault);

/* --- writing --- */
struct st_out_tensor {
    const char *name; /* borrowed */
    bool is_bf16;     /* else F32 */
    int n_dims;
    int64_t dim[2];
    int64_t n;
    int file;
    int64_t offset; /* from the beginning of the file */
};
struct st_out {
    int n_tensors, n_files;
    struct st_out_tensor *tensor; /* name, type and shape given */
    int64_t *file_bytes;          /* [n_files] */
    char **header;                /* [n_files] the first bytes, header_bytes of them */
    int64_t *header_bytes;
};

/* Gives each tensor, in order, its file and offset: a new file begins where one would hold more
 * than shard_bytes of them. Free what it made with st_out_free. */
void st_out_plan(struct st_out *out, int64_t shard_bytes);
void st_out_free(struct st_out *out);

/* model-00001-of-00163.safetensors, i from 0. Returns name. */
enum { ST_FILE_NAME = 48 };
const char *st_out_file_name(char name[ST_FILE_NAME], int i, int n_files);

/* The text of the index; free with free(). */
char *st_out_index(const struct st_out *out);
