/* arena.c - bump allocation with marks; see arena.h. */
#include "base/arena.h"

#include "base/err.h"
#include "base/poison.h"

#include <stdint.h>
#include <string.h>

void arena_init(struct arena *arena, const char *name, void *base, size_t cap, bool poison)
{
    *arena = (struct arena){.name = name, .base = base, .cap = cap, .poison = poison && base};
    if (arena->poison) poison_forbid(base, cap);
}

void *arena_push(struct arena *arena, size_t bytes)
{
    const size_t padded = (bytes + POISON_GAP + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    const size_t at = arena->used;
    CHECK(!arena->base || at + padded <= arena->cap, "%s memory: %zu bytes wanted, %zu of %zu left",
          arena->name, bytes, arena->cap - at, arena->cap);
    arena->used = at + padded;
    if (arena->used > arena->peak) arena->peak = arena->used;
    if (!arena->base) return (void *)(uintptr_t)(at + ARENA_ALIGN);
    if (arena->poison) {
        poison_allow(arena->base + at, padded);
        memset(arena->base + at, 0xFF, padded);
        poison_forbid(arena->base + at + bytes, padded - bytes);
    }
    return arena->base + at;
}

void arena_pop(struct arena *arena, size_t mark)
{
    CHECK(mark <= arena->used, "%s memory: mark %zu above used %zu", arena->name, mark,
          arena->used);
    if (arena->poison) {
        poison_allow(arena->base + mark, arena->used - mark);
        memset(arena->base + mark, 0xFF, arena->used - mark);
        poison_forbid(arena->base + mark, arena->used - mark);
    }
    arena->used = mark;
}
