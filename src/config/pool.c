/* pool.c - blocks of a pool; see pool.h. */
#include "config/pool.h"

#include "base/err.h"
#include "base/poison.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_BLOCK_BYTES = 16384, POOL_ALIGN = alignof(max_align_t) };

struct pool_block {
    struct pool_block *before;
    size_t used, cap;
    alignas(max_align_t) char data[];
};

void *pool_take(struct pool *pool, size_t bytes)
{
    const size_t need = (bytes + POISON_GAP + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    struct pool_block *block = pool->last;
    if (!block || block->cap - block->used < need) {
        const size_t cap = need > POOL_BLOCK_BYTES ? need : POOL_BLOCK_BYTES;
        block = calloc(1, sizeof *block + cap);
        CHECK(block, "no memory for %zu bytes of configuration", cap);
        poison_forbid(block->data, cap);
        block->cap = cap;
        block->before = pool->last;
        pool->last = block;
    }
    void *p = block->data + block->used;
    block->used += need;
    poison_allow(p, bytes);
    return p;
}

char *pool_text(struct pool *pool, const char *text, size_t n)
{
    char *copy = pool_take(pool, n + 1);
    memcpy(copy, text, n);
    return copy;
}

void pool_free(struct pool *pool)
{
    while (pool->last) {
        struct pool_block *block = pool->last;
        pool->last = block->before;
        poison_allow(block->data, block->cap);
        free(block);
    }
}
