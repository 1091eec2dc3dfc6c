/* safetensors_write.c - which tensor comes into which file where; see safetensors.h. */
#include "safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t bytes_of(const struct st_out_tensor *t)
{
    return t->n * (t->is_bf16 ? 2 : 4);
}

const char *st_out_file_name(char name[ST_FILE_NAME], int i, int n_files)
{
    snprintf(name, ST_FILE_NAME, "model-%05d-of-%05d.safetensors", i + 1, n_files);
    return name;
}

/* Offsets of a file's tensors inside its data: F32 before BF16, so that each begins at a multiple
 * of its size. Returns the bytes of all. */
static int64_t place(struct st_out_tensor *t, int n)
{
    int64_t at = 0;
    for (int narrow = 0; narrow < 2; narrow++)
        for (int i = 0; i < n; i++) {
            if (t[i].is_bf16 != narrow) continue;
            t[i].offset = at;
            at += bytes_of(&t[i]);
        }
    return at;
}

/* The length and the JSON, filled up with blanks so that the data begin at a multiple of 8. */
static char *make_header(const struct st_out_tensor *t, int n, int64_t *n_bytes)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out, "no memory for a header");
    fwrite("12345678", 1, 8, out);
    fputs("{\"__metadata__\":{\"format\":\"pt\"}", out); /* which PyTorch's readers ask for */
    for (int i = 0; i < n; i++) {
        fprintf(out, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRId64, t[i].name,
                t[i].is_bf16 ? "BF16" : "F32", t[i].dim[0]);
        if (t[i].n_dims == 2) fprintf(out, ",%" PRId64, t[i].dim[1]);
        fprintf(out, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", t[i].offset,
                t[i].offset + bytes_of(&t[i]));
    }
    fputc('}', out);
    while (ftell(out) % 8) fputc(' ', out);
    CHECK(!fclose(out) && text, "no memory for a header");
    const uint64_t length = bytes - 8;
    memcpy(text, &length, sizeof length);
    *n_bytes = (int64_t)bytes;
    return text;
}

void st_out_plan(struct st_out *out, int64_t shard_bytes)
{
    int64_t at = 0;
    out->n_files = 1;
    for (int i = 0; i < out->n_tensors; i++) {
        struct st_out_tensor *t = &out->tensor[i];
        if (at > 0 && at + bytes_of(t) > shard_bytes) {
            out->n_files++;
            at = 0;
        }
        at += bytes_of(t);
        t->file = out->n_files - 1;
    }
    const size_t n_files = (size_t)out->n_files;
    out->header = calloc(n_files, sizeof *out->header);
    out->header_bytes = calloc(n_files, sizeof *out->header_bytes);
    out->file_bytes = calloc(n_files, sizeof *out->file_bytes);
    CHECK(out->header && out->header_bytes && out->file_bytes, "no memory for %d files",
          out->n_files);
    struct st_out_tensor *t = out->tensor;
    for (int f = 0, n; f < out->n_files; f++, t += n) {
        for (n = 0; t + n < out->tensor + out->n_tensors && t[n].file == f;) n++;
        const int64_t bytes = place(t, n);
        out->header[f] = make_header(t, n, &out->header_bytes[f]);
        out->file_bytes[f] = out->header_bytes[f] + bytes;
        for (int i = 0; i < n; i++) t[i].offset += out->header_bytes[f];
    }
}

void st_out_free(struct st_out *out)
{
    for (int f = 0; out->header && f < out->n_files; f++) free(out->header[f]);
    free(out->header);
    free(out->header_bytes);
    free(out->file_bytes);
    out->header = NULL;
    out->header_bytes = out->file_bytes = NULL;
}

char *st_out_index(const struct st_out *out)
{
    char name[ST_FILE_NAME];
    int64_t total = 0;
    json_t *map = json_object();
    for (int i = 0; i < out->n_tensors; i++) {
        total += bytes_of(&out->tensor[i]);
        st_out_file_name(name, out->tensor[i].file, out->n_files);
        json_object_set_new(map, out->tensor[i].name, json_string(name));
    }
    json_t *root =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    CHECK(text, "no memory for the index");
    json_decref(root);
    return text;
}
