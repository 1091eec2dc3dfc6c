/*
 * arena.h - one allocation per role (weights, gradients, optimizer, staging; activations have
 * three, see model.h), handed out from the bottom up and given back in reverse order. With no
 * memory behind it an arena only counts: the plan pass runs the allocating code against counting
 * arenas and reads .peak.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { ARENA_ALIGN = 256 }; /* every block starts on such a boundary */

struct arena {
    const char *name; /* the role, for messages */
    char *base;       /* NULL: counting */
    size_t cap, used, peak;
    bool poison; /* fill fresh and released memory with 0xFF, which is NaN in F32 and BF16, and
                  * (address sanitizer) forbid what is not handed out; host memory only */
};

/* Borrows base (cap bytes, ARENA_ALIGN-aligned, may be NULL for counting) until the last use. */
void arena_init(struct arena *arena, const char *name, void *base, size_t cap, bool poison);

/* A block of bytes, never NULL; not zeroed. A counting arena returns an address that must not be
 * read or written. Running out is fatal and prints name, wanted and left. */
void *arena_push(struct arena *arena, size_t bytes);

/* Everything pushed since the mark is given back. */
static inline size_t arena_mark(const struct arena *arena)
{
    return arena->used;
}
void arena_pop(struct arena *arena, size_t mark);
