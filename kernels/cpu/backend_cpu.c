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

static void cpu_copy(struct stream *s, void *dst, const void *src, size_t bytes)
{
    (void)s;
    if (bytes > 0) memcpy(dst, src, bytes);
}

static void cpu_zero(struct stream *s, void *p, size_t bytes)
{
    (void)s;
    if (bytes > 0) memset(p, 0, bytes);
}

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
    .copy = cpu_copy,
    .zero = cpu_zero,
    .measure_peak = cpu_measure_peak,
    .cast = cpu_cast,
    .add = cpu_add,
    .copy_rows = cpu_copy_rows,
    .sum_squares = cpu_sum_squares,
    .sum_add = cpu_sum_add,
    .linear_fwd = cpu_linear_fwd,
    .linear_bwd_x = cpu_linear_bwd_x,
    .linear_bwd_w = cpu_linear_bwd_w,
    .grouped_fwd = cpu_grouped_fwd,
    .grouped_bwd_x = cpu_grouped_bwd_x,
    .grouped_bwd_w = cpu_grouped_bwd_w,
    .rmsnorm_fwd = cpu_rmsnorm_fwd,
    .rmsnorm_bwd = cpu_rmsnorm_bwd,
    .rope = cpu_rope,
    .attention_fwd = cpu_attention_fwd,
    .attention_bwd = cpu_attention_bwd,
    .swiglu_fwd = cpu_swiglu_fwd,
    .swiglu_bwd = cpu_swiglu_bwd,
    .embedding_fwd = cpu_embedding_fwd,
    .embedding_bwd = cpu_embedding_bwd,
    .router_fwd = cpu_router_fwd,
    .router_bwd = cpu_router_bwd,
    .balance_stats = cpu_balance_stats,
    .balance_loss = cpu_balance_loss,
    .bias_update = cpu_bias_update,
    .sort_by_expert = cpu_sort_by_expert,
    .count_add = cpu_count_add,
    .gather_rows = cpu_gather_rows,
    .combine_fwd = cpu_combine_fwd,
    .combine_bwd = cpu_combine_bwd,
    .cross_entropy_max = cpu_cross_entropy_max,
    .cross_entropy_sum = cpu_cross_entropy_sum,
    .cross_entropy_loss = cpu_cross_entropy_loss,
    .adamw = cpu_adamw,
};
