/* backend.c - the choice of a backend by name, the check that its table is whole, and its arenas.
 */
#include "kernels/backend.h"

#include "base/arena.h"
#include "base/err.h"

#include <string.h>

const struct backend *backend_find(const char *name)
{
    if (strcmp(name, backend_cpu.name) == 0) return &backend_cpu;
    return NULL;
}

bool backend_is_cpu(const struct backend *be)
{
    return be && strcmp(be->name, backend_cpu.name) == 0;
}

#define SLOT(op)                                                                                   \
    {                                                                                              \
#op, offsetof(struct backend, op)                                                          \
    }
static const struct {
    const char *op;
    size_t offset;
} slots[] = {
    SLOT(alloc),       SLOT(free),         SLOT(stream_create),     SLOT(stream_destroy),
    SLOT(stream_sync), SLOT(event_create), SLOT(event_destroy),     SLOT(event_record),
    SLOT(event_wait),  SLOT(measure_peak), SLOT(measure_bandwidth), BACKEND_OPERATIONS(SLOT),
};

/* The name is the table's only member that is not a slot. */
enum { N_SLOTS = sizeof slots / sizeof *slots };
_Static_assert(sizeof(struct backend) == (N_SLOTS + 1) * sizeof(void *),
               "a slot of struct backend is missing here");

void backend_check(const struct backend *be)
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        void *f;
        memcpy(&f, (const char *)be + slots[i].offset, sizeof f);
        CHECK(f, "backend %s has no operation %s", be->name, slots[i].op);
    }
}

void backend_take_arena(const struct backend *be, struct arena *arena, const char *name,
                        size_t bytes, bool poison)
{
    arena_init(arena, name, be ? be->alloc(bytes, name) : NULL, bytes,
               poison && backend_is_cpu(be));
}
