/*
 * comm_rig.h - the communicators of one mesh with staging memory, and numbers that every rank can
 * compute for every other, for the tests of src/comm.
 */
#pragma once

#include "base/mem.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "test.h"

#include <string.h>

struct comm_rig {
    struct mesh mesh;
    struct stream *stream;
    struct arena staging;
    struct comm comm;
};

/* Collective. The struct must not move. */
static inline void comm_rig_init(struct comm_rig *rig, int tp, int ep, int ranks_per_node)
{
    enum { STAGING = 40 << 20 };
    const struct config cfg = {.topology = {tp, ep, ranks_per_node}};
    memset(rig, 0, sizeof *rig);
    mesh_init(&rig->mesh, &cfg);
    rig->stream = backend_cpu.stream_create(1);
    arena_init(&rig->staging, "staging", mem_alloc(STAGING, "staging"), STAGING, true);
    comm_init(&rig->comm, &rig->mesh, &backend_cpu, rig->stream, &rig->staging);
}

static inline void comm_rig_free(struct comm_rig *rig)
{
    EXPECT(rig->staging.used == 0, "%zu bytes of staging in use", rig->staging.used);
    comm_free(&rig->comm);
    mem_free(rig->staging.base);
    backend_cpu.stream_destroy(rig->stream);
    mesh_free(&rig->mesh);
}

/* Number i that the rank holds: a few hundred in size and not a sum of few powers of two, so that
 * the order of additions and every rounding show. */
static inline float comm_rig_value(int world_rank, int64_t i)
{
    const uint64_t x = rng_u64(99, (uint64_t)world_rank << 40 | (uint64_t)i);
    return (float)((double)(int64_t)x / 3e16);
}

/* The counts since the last look: bytes of one call that sends `each` bytes to every other member
 * of the axis. */
static inline void comm_rig_expect_even(struct comm_rig *rig, enum axis axis, int64_t each,
                                        const char *what)
{
    const struct mesh_axis *a = &rig->mesh.axis[axis];
    int64_t intra = 0, inter = 0;
    for (int r = 0; r < a->size; r++)
        if (r != a->rank) *(a->same_node[r] ? &intra : &inter) += each;
    const struct comm_count got = comm_take_count(&rig->comm);
    EXPECT(got.bytes_intra == intra && got.bytes_inter == inter,
           "%s over %s: %lld bytes within the node and %lld between nodes, expected %lld and %lld",
           what, axis_name(axis), (long long)got.bytes_intra, (long long)got.bytes_inter,
           (long long)intra, (long long)inter);
    EXPECT(got.calls == (a->size > 1) || each == 0, "%s over %s: %lld calls", what, axis_name(axis),
           (long long)got.calls);
}
