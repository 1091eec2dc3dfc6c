/*
 * backend_cpu.c - the CPU backend's table, with memory, streams and events. Calls run at once, so
 * events have nothing to do; the operations are in the other files of this directory.
 */
#include "kernels/cpu/cpu.h"

#include "base/err.h"
#include "base/mem.h"

#include <omp.h>

struct event {
    char unused;
};

static void *cpu_alloc(size_t bytes, const char *what)
{
    return mem_alloc(bytes, what);
}
static void cpu_free(void *p)
{
    mem_free(p);
}

static struct stream *cpu_stream_create(int threads)
{
    CHECK(threads >= 1, "a stream of %d threads", threads);
    struct stream *s = mem_alloc(sizeof *s, "stream");
    s->threads = threads;
    s->scratch = mem_alloc((size_t)threads * CPU_SCRATCH_BYTES, "stream scratch");
    omp_set_num_threads(threads);
    return s;
}

static void cpu_stream_destroy(struct stream *s)
{
    if (!s) return;
    mem_free(s->scratch);
    mem_free(s);
}

static void cpu_stream_sync(struct stream *s)
{
    (void)s;
}

static struct event *cpu_event_create(void)
{
    return mem_alloc(sizeof(struct event), "event");
}
static void cpu_event_destroy(struct event *e)
{
    mem_free(e);
}

static void cpu_event_record(struct event *e, struct stream *s)
{
    (void)e;
    (void)s;
}

static void cpu_event_wait(struct stream *s, struct event *e)
{
    (void)s;
    (void)e;
}

#define OPERATION(op) .op = cpu_##op
const struct backend backend_cpu = {
    .name = "cpu",
    .alloc = cpu_alloc,
    .free = cpu_free,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_sync = cpu_stream_sync,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .measure_peak = cpu_measure_peak,
    .measure_bandwidth = cpu_measure_bandwidth,
    BACKEND_OPERATIONS(OPERATION),
};
