/*
 * ckpt_rig.h - for tests that look into checkpoints: open one, compare two tensor by tensor.
 */
#pragma once
#include "ckpt/store.h"
#include "tests/test.h"

#include <stdlib.h>

struct ckpt {
    struct manifest manifest;
    struct ckpt_reader reader;
    char dir[CKPT_PATH];
};

/* The checkpoint of that step of the run in run_dir; it must be whole. */
static inline void ckpt_open(struct ckpt *c, const char *run_dir, int64_t step)
{
    char root[CKPT_PATH];
    struct fault fault = {0};
    path_print(root, "%s/checkpoints", run_dir);
    store_path(c->dir, root, step);
    const int bad = manifest_try_read(&c->manifest, c->dir, &fault);
    CHECK(!bad, "%s", fault.why);
    ckpt_reader_init(&c->reader, &c->manifest, c->dir);
}

static inline void ckpt_close(struct ckpt *c)
{
    ckpt_reader_free(&c->reader);
    manifest_free(&c->manifest);
}

/* All elements, as they lie in the file; new memory, to be freed with free(). */
static inline void *ckpt_read(struct ckpt *c, const struct ckpt_tensor *t)
{
    struct fault fault = {0};
    void *x = malloc((size_t)t->n * dtype_bytes(t->dtype));
    CHECK(x && !ckpt_try_read(&c->reader, t, 0, t->n, x, &fault), "%s", fault.why);
    return x;
}

/* The same tensors with the same bits, whoever wrote them. */
static inline void ckpt_expect_same(struct ckpt *a, struct ckpt *b)
{
    EXPECT(a->manifest.n_tensors == b->manifest.n_tensors, "%d tensors and %d",
           a->manifest.n_tensors, b->manifest.n_tensors);
    for (int i = 0; i < a->manifest.n_tensors; i++) {
        const struct ckpt_tensor *t = &a->manifest.tensor[i];
        const struct ckpt_tensor *u = manifest_find(&b->manifest, t->name);
        EXPECT(u && u->n == t->n && u->dtype == t->dtype, "%s in %s", t->name, b->dir);
        if (!u) continue;
        void *x = ckpt_read(a, t), *y = ckpt_read(b, u);
        EXPECT(!memcmp(x, y, (size_t)t->n * dtype_bytes(t->dtype)), "%s: %s differs", b->dir,
               t->name);
        free(x);
        free(y);
    }
}
