/*
 * pool.h - small memory of one lifetime: the nodes and strings of a configuration are taken from a
 * pool and freed together. A zeroed pool is empty.
 */
#pragma once

#include <stddef.h>

struct pool {
    struct pool_block *last;
};

/* Zeroed, aligned for any type; fatal when there is no memory. */
void *pool_take(struct pool *pool, size_t bytes);

/* A copy of n bytes of text with a terminating NUL. */
char *pool_text(struct pool *pool, const char *text, size_t n);

void pool_free(struct pool *pool);
