/*
 * ckpt_digest DIR ... - for tests: checks every byte of checkpoints and prints a line about each,
 *
 *     step 12 tokens 3072 samples 96 skipped 0 0 loss LOSS parameters HASH contents HASH
 *
 * equal for two checkpoints that hold the same state and the same tensors, wherever and however
 * their ranks have written them. The first one that is not whole ends it: exit code 1, its fault.
 */
#include "base/mem.h"
#include "ckpt/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int try_check(struct ckpt_reader *reader, struct fault *fault)
{
    const struct manifest *m = reader->manifest;
    int bad = ckpt_try_verify_config(reader, fault);
    for (int i = 0; !bad && i < m->n_files; i++) bad = ckpt_try_verify_file(reader, i, fault);
    for (int i = 0; !bad && i < m->n_boxes; i++) bad = ckpt_try_verify_box(reader, i, fault);
    return bad;
}

/* Names, shapes and values of all tensors. */
static int try_hash(struct ckpt_reader *reader, uint64_t *hash, struct fault *fault)
{
    const struct manifest *m = reader->manifest;
    int bad = 0;
    *hash = 0;
    for (int i = 0; !bad && i < m->n_tensors; i++) {
        const struct ckpt_tensor *t = &m->tensor[i];
        const size_t bytes = (size_t)t->n * dtype_bytes(t->dtype);
        void *values = mem_alloc(bytes, t->name);
        bad = ckpt_try_read(reader, t, 0, t->n, values, fault);
        *hash = XXH3_64bits_withSeed(t->name, strlen(t->name), *hash);
        *hash = XXH3_64bits_withSeed(t->dim, sizeof *t->dim * (size_t)t->n_dims, *hash);
        *hash = XXH3_64bits_withSeed(values, bytes, *hash);
        mem_free(values);
    }
    return bad;
}

static int try_digest(const char *dir, struct fault *fault)
{
    struct manifest m;
    struct ckpt_reader reader = {0};
    uint64_t hash;
    int bad = manifest_try_read(&m, dir, fault);
    if (!bad) {
        ckpt_reader_init(&reader, &m, dir);
        bad = try_check(&reader, fault) || try_hash(&reader, &hash, fault) ? -1 : 0;
        ckpt_reader_free(&reader);
    }
    const struct ckpt_state *s = &m.state;
    if (!bad)
        printf("step %" PRId64 " tokens %" PRId64 " samples %" PRId64 " skipped %" PRId64
               " %d loss %a parameters %016" PRIx64 " contents %016" PRIx64 "\n",
               s->step, s->tokens, s->samples, s->skipped, s->skipped_in_row, s->loss,
               s->param_hash, hash);
    manifest_free(&m);
    return bad;
}

int main(int argc, char **argv)
{
    struct fault fault = {0};
    for (int i = 1; i < argc; i++)
        if (try_digest(argv[i], &fault)) {
            fprintf(stderr, "%s: %s\n", argv[i], fault.why);
            return 1;
        }
    return 0;
}
