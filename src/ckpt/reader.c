/* reader.c - tensors of a checkpoint: reading, checking, writing without a thread; see store.h. */
#include "ckpt/io.h"
#include "ckpt/store.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { BUFFER_BYTES = 1 << 22 };

void ckpt_reader_init(struct ckpt_reader *r, const struct manifest *manifest, const char *dir)
{
    *r = (struct ckpt_reader){.manifest = manifest, .dir = dir};
    r->fd = mem_alloc(sizeof *r->fd * (size_t)manifest->n_files, "files of a checkpoint");
    for (int i = 0; i < manifest->n_files; i++) r->fd[i] = -1;
}

void ckpt_reader_free(struct ckpt_reader *r)
{
    for (int i = 0; r->manifest && i < r->manifest->n_files; i++)
        if (r->fd[i] >= 0) close(r->fd[i]);
    mem_free(r->fd);
    *r = (struct ckpt_reader){0};
}

static const char *file_path(char path[CKPT_PATH], const struct ckpt_reader *r, int file)
{
    path_print(path, "%s/%s", r->dir, r->manifest->file[file].name);
    return path;
}

static int try_open(struct ckpt_reader *r, int file, struct fault *fault)
{
    char path[CKPT_PATH];
    struct stat st;
    if (r->fd[file] < 0) r->fd[file] = io_try_open(file_path(path, r, file), &st, fault);
    return r->fd[file] < 0 ? -1 : 0;
}

int ckpt_try_read(struct ckpt_reader *r, const struct ckpt_tensor *t, int64_t first, int64_t n,
                  void *to, struct fault *fault)
{
    const struct ckpt_box box = {.base = first, .run = n, .stride = n, .count = n};
    char path[CKPT_PATH];
    if (try_open(r, t->file, fault)) return -1;
    return io_try_box(r->fd[t->file], file_path(path, r, t->file), t, &box, to, false, fault);
}

int ckpt_try_read_part(struct ckpt_reader *r, const struct ckpt_box *box, int64_t done, int64_t n,
                       void *to, struct fault *fault)
{
    const struct ckpt_tensor *t = &r->manifest->tensor[box->tensor];
    const struct ckpt_box part = io_box_part(box, done, n);
    char path[CKPT_PATH];
    if (try_open(r, t->file, fault)) return -1;
    return io_try_box(r->fd[t->file], file_path(path, r, t->file), t, &part, to, false, fault);
}

int ckpt_try_finite(const char *where, const struct ckpt_tensor *t, const struct ckpt_box *box,
                    int64_t done, int64_t n, const void *x, struct fault *fault)
{
    const int64_t i = dtype_find_nonfinite(x, t->dtype, n);
    if (i == n) return 0;
    const struct ckpt_box at = io_box_part(box, done + i, 1);
    const double value = t->dtype == DTYPE_F32 ? (double)((const float *)x)[i]
                                               : (double)bf16_to_f32(((const bf16 *)x)[i]);
    return fault_set(fault, CODE_DATA,
                     "%s: %s: element %" PRId64 " is %g, expected a finite number", where, t->name,
                     at.base + at.first, value);
}

/* odd: becomes the fault of the first element that is not finite. */
static int try_hash_box(struct ckpt_reader *r, const struct ckpt_box *box, void *buffer,
                        XXH3_state_t *hash, struct fault *odd, struct fault *fault)
{
    const struct ckpt_tensor *t = &r->manifest->tensor[box->tensor];
    const int64_t size = (int64_t)dtype_bytes(t->dtype), most = BUFFER_BYTES / size;
    char path[CKPT_PATH];
    for (int64_t done = 0; done < box->count; done += most) {
        const int64_t left = box->count - done, n = left < most ? left : most;
        if (ckpt_try_read_part(r, box, done, n, buffer, fault)) return -1;
        XXH3_64bits_update(hash, buffer, (size_t)(n * size));
        if (odd->code == CODE_DONE)
            ckpt_try_finite(file_path(path, r, t->file), t, box, done, n, buffer, odd);
    }
    return 0;
}

int ckpt_try_verify_box(struct ckpt_reader *r, int i, struct fault *fault)
{
    const struct ckpt_box *box = &r->manifest->box[i];
    void *buffer = malloc(BUFFER_BYTES);
    XXH3_state_t *hash = XXH3_createState();
    CHECK(buffer && hash, "no memory to check a checkpoint");
    XXH3_64bits_reset(hash);
    struct fault odd = {0};
    const int bad = try_hash_box(r, box, buffer, hash, &odd, fault);
    const uint64_t got = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    free(buffer);
    if (bad) return bad;
    if (got != box->hash) return ckpt_altered(r, box, got, fault);
    if (odd.code != CODE_DONE) *fault = odd;
    return odd.code == CODE_DONE ? 0 : -1;
}

int ckpt_altered(const struct ckpt_reader *r, const struct ckpt_box *box, uint64_t got,
                 struct fault *fault)
{
    const struct ckpt_tensor *t = &r->manifest->tensor[box->tensor];
    char path[CKPT_PATH];
    return fault_set(fault, CODE_DATA,
                     "%s: %s, box of %" PRId64 " elements from element %" PRId64
                     ": checksum %016" PRIx64 ", expected %016" PRIx64 ": it has been altered",
                     file_path(path, r, t->file), t->name, box->count, box->base + box->first, got,
                     box->hash);
}

static int try_hash_gap(struct ckpt_reader *r, int file, int64_t from, int64_t to, void *buffer,
                        XXH3_state_t *hash, struct fault *fault)
{
    char path[CKPT_PATH];
    for (file_path(path, r, file); from < to; from += BUFFER_BYTES) {
        const int64_t n = to - from < BUFFER_BYTES ? to - from : BUFFER_BYTES;
        if (io_try_read(r->fd[file], path, buffer, n, from, fault)) return -1;
        XXH3_64bits_update(hash, buffer, (size_t)n);
    }
    return 0;
}

static int try_hash_gaps(struct ckpt_reader *r, int file, XXH3_state_t *hash, struct fault *fault)
{
    const struct manifest *m = r->manifest;
    void *buffer = malloc(BUFFER_BYTES);
    CHECK(buffer, "no memory to check a checkpoint");
    const struct ckpt_tensor **in = ckpt_by_offset(m->tensor, m->n_tensors, file);
    int bad = 0;
    int64_t at = 0;
    for (int i = 0; !bad && in[i]; i++) {
        bad = try_hash_gap(r, file, at, in[i]->offset, buffer, hash, fault);
        at = in[i]->offset + in[i]->n * (int64_t)dtype_bytes(in[i]->dtype);
    }
    if (!bad) bad = try_hash_gap(r, file, at, m->file[file].bytes, buffer, hash, fault);
    free(buffer);
    free((void *)in);
    return bad;
}

int ckpt_try_verify_file(struct ckpt_reader *r, int file, struct fault *fault)
{
    char path[CKPT_PATH];
    if (try_open(r, file, fault)) return -1;
    XXH3_state_t *hash = XXH3_createState();
    CHECK(hash, "no memory to check a checkpoint");
    XXH3_64bits_reset(hash);
    const int bad = try_hash_gaps(r, file, hash, fault);
    const uint64_t got = XXH3_64bits_digest(hash), want = r->manifest->file[file].hash;
    XXH3_freeState(hash);
    if (bad || got == want) return bad;
    return fault_set(fault, CODE_DATA,
                     "%s: the bytes around its tensors: checksum %016" PRIx64
                     ", expected %016" PRIx64 ": they have been altered",
                     file_path(path, r, file), got, want);
}

int ckpt_try_verify_config(struct ckpt_reader *r, struct fault *fault)
{
    char path[CKPT_PATH];
    int64_t bytes;
    path_print(path, "%s/config.yaml", r->dir);
    const int64_t want = (int64_t)strlen(r->manifest->config);
    char *text = io_try_read_file(path, want + 1, &bytes, fault);
    if (!text) return -1;
    const bool same = bytes == want && !memcmp(text, r->manifest->config, (size_t)want);
    free(text);
    return same ? 0 : fault_set(fault, CODE_DATA, "%s: is not what the manifest says", path);
}

int ckpt_try_verify(struct ckpt_reader *r, struct fault *fault)
{
    const struct manifest *m = r->manifest;
    int bad = ckpt_try_verify_config(r, fault);
    for (int i = 0; !bad && i < m->n_files; i++) bad = ckpt_try_verify_file(r, i, fault);
    for (int i = 0; !bad && i < m->n_boxes; i++) bad = ckpt_try_verify_box(r, i, fault);
    return bad;
}
