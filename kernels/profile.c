/*
 * profile.c - the measuring table: one function an operation, made by OP, which times the call and
 * says what work it is. See profile.h.
 */
#include "kernels/profile_record.h"

#include "base/clock.h"
#include "base/place.h"

#include <string.h>

static const struct backend *inner;
static struct profile_record record;
static bool counting;

struct work {
    double flop, bytes;
    enum dtype dt;
    int in, out;
};

const struct profile_record *profile_get_record(void)
{
    return &record;
}

/* The names are string literals, equal ones of different files perhaps at different addresses. */
static bool is_entry(const struct profile_entry *e, const char *phase, const char *op,
                     const struct work *w)
{
    return e->op == op && e->dt == w->dt && e->in == w->in && e->out == w->out &&
           (e->phase == phase || !strcmp(e->phase, phase));
}

/* The last entry takes whatever finds no other place. */
static struct profile_entry *find_entry(const char *op, const struct work *w)
{
    const char *phase = place_doing();
    for (int i = 0; i < record.n_entries; i++)
        if (is_entry(&record.entry[i], phase, op, w)) return &record.entry[i];
    if (record.n_entries == PROFILE_ENTRIES) return &record.entry[PROFILE_ENTRIES - 1];
    struct profile_entry *e = &record.entry[record.n_entries++];
    *e = (struct profile_entry){.phase = phase, .op = op, .dt = w->dt, .in = w->in, .out = w->out};
    return e;
}

/* A backend that only enqueues has to finish before and after, or the time is another call's. */
static double begin(struct stream *s)
{
    if (counting) inner->stream_sync(s);
    return clock_s();
}

static void end(struct stream *s, const char *op, double start, struct work w)
{
    if (!counting) return;
    inner->stream_sync(s);
    struct profile_entry *e = find_entry(op, &w);
    e->seconds += clock_s() - start;
    e->flop += w.flop;
    e->bytes += w.bytes;
    e->calls++;
}

static double size(enum dtype dt)
{
    return (double)dtype_bytes(dt);
}

/* rows x cols elements, each so many bytes of operands. */
static struct work bytes(int64_t rows, int64_t cols, double each)
{
    return (struct work){.bytes = (double)(rows * cols) * each};
}

/* --- work of products and attention --- */

static struct work dense(double rows, double matrices, int in, int out, enum dtype dt, double x_b,
                         double y_b, double w_b)
{
    return (struct work){.flop = 2.0 * rows * in * out,
                         .bytes = rows * in * x_b + rows * out * y_b + matrices * in * out * w_b,
                         .dt = dt,
                         .in = in,
                         .out = out};
}

static struct work linear(const struct linear_shape *p, enum dtype dt, double x_b, double y_b,
                          double w_b)
{
    return dense((double)p->N, 1, p->in, p->out, dt, x_b, y_b, w_b);
}

/* Matrices of groups without rows are not touched. */
static struct work grouped(const struct grouped_shape *p, enum dtype dt, double x_b, double y_b,
                           double w_b)
{
    int n_used = 0;
    for (int g = 0; g < p->n_groups; g++) n_used += p->offset[g + 1] > p->offset[g];
    const double rows = (double)(p->offset[p->n_groups] - p->offset[0]);
    return dense(rows, n_used, p->in, p->out, dt, x_b, y_b, w_b);
}

/* Pairs of tokens on and below the diagonal, as if every sequence were one document; passes: how
 * often the tensors go by. Backward has five products instead of two. */
static struct work attention(const struct attention_shape *p, enum dtype dt, double products,
                             double passes)
{
    const int d_qk = p->d_nope + p->d_rope;
    const double pairs = 0.5 * (double)p->B * p->H * p->T * (p->T + 1.0);
    const double values = p->H * (d_qk + p->d_nope + 2.0 * p->d_v) + p->d_rope;
    return (struct work){.flop = products * pairs * (d_qk + p->d_v),
                         .bytes = passes * (double)p->B * p->T * values * size(dt),
                         .dt = dt};
}

static struct work cached(const struct cached_shape *p, enum dtype dt)
{
    const double heads = (double)p->n * p->H, seen = (double)p->past + 0.5 * (double)(p->n + 1);
    const double in = (double)p->r_kv * (p->d_nope + p->d_v);
    const double latents = (double)(p->past + p->n) * (p->r_kv + p->d_rope);
    return (struct work){.flop = 2 * heads * (in + seen * (2.0 * p->r_kv + p->d_rope)),
                         .bytes = (latents + p->H * in) * size(dt),
                         .dt = dt};
}

/* --- the table. OP(name, parameters, arguments, work) --- */

#define UNPACK(...) __VA_ARGS__
#define OP(op, params, args, work)                                                                 \
    static void profiled_##op(struct stream *s, UNPACK params)                                     \
    {                                                                                              \
        const double start = begin(s);                                                             \
        inner->op(s, UNPACK args);                                                                 \
        end(s, #op, start, work);                                                                  \
    }

OP(copy, (void *dst, const void *src, size_t n), (dst, src, n), bytes((int64_t)n, 1, 2))
OP(zero, (void *p, size_t n), (p, n), bytes((int64_t)n, 1, 1))

OP(cast, (void *dst, enum dtype dst_dt, const void *src, enum dtype src_dt, int64_t n),
   (dst, dst_dt, src, src_dt, n), bytes(n, 1, size(dst_dt) + size(src_dt)))
OP(add, (void *y, const void *a, enum dtype dt, const void *b, enum dtype b_dt, int64_t n),
   (y, a, dt, b, b_dt, n), bytes(n, 1, 2 * size(dt) + size(b_dt)))
OP(copy_rows,
   (void *dst, int64_t dst_stride, const void *src, int64_t src_stride, enum dtype dt, int64_t rows,
    int cols),
   (dst, dst_stride, src, src_stride, dt, rows, cols), bytes(rows, cols, 2 * size(dt)))
OP(sum_squares, (double *sum, const float *x, int64_t n), (sum, x, n), bytes(n, 1, 4))
OP(sum_add, (double *sum, int64_t *n_bad, const float *x, int64_t n), (sum, n_bad, x, n),
   bytes(n, 1, 4))

OP(linear_fwd,
   (void *y, enum dtype y_dt, const void *x, const void *w, enum dtype dt,
    const struct linear_shape *shape),
   (y, y_dt, x, w, dt, shape), linear(shape, dt, size(dt), size(y_dt), size(dt)))
OP(linear_bwd_x,
   (void *dx, const void *dy, const void *w, enum dtype dt, const struct linear_shape *shape,
    bool accumulate),
   (dx, dy, w, dt, shape, accumulate),
   linear(shape, dt, size(dt) * (1 + accumulate), size(dt), size(dt)))
OP(linear_bwd_w,
   (float *dw, const void *dy, const void *x, enum dtype dt, const struct linear_shape *shape),
   (dw, dy, x, dt, shape), linear(shape, dt, size(dt), size(dt), 8))
OP(grouped_fwd,
   (void *y, const void *x, const void *w, enum dtype dt, const struct grouped_shape *shape),
   (y, x, w, dt, shape), grouped(shape, dt, size(dt), size(dt), size(dt)))
OP(grouped_bwd_x,
   (void *dx, const void *dy, const void *w, enum dtype dt, const struct grouped_shape *shape,
    bool accumulate),
   (dx, dy, w, dt, shape, accumulate),
   grouped(shape, dt, size(dt) * (1 + accumulate), size(dt), size(dt)))
OP(grouped_bwd_w,
   (float *dw, const void *dy, const void *x, enum dtype dt, const struct grouped_shape *shape),
   (dw, dy, x, dt, shape), grouped(shape, dt, size(dt), size(dt), 8))

OP(rmsnorm_fwd,
   (void *y, float *rstd, const void *x, const float *g, enum dtype dt,
    const struct norm_shape *shape),
   (y, rstd, x, g, dt, shape), bytes(shape->N, shape->D, 2 * size(dt)))
OP(rmsnorm_bwd,
   (void *dx, float *dg, const void *dy, const void *x, const float *rstd, const float *g,
    enum dtype dt, const struct norm_shape *shape, bool accumulate),
   (dx, dg, dy, x, rstd, g, dt, shape, accumulate),
   bytes(shape->N, shape->D, (3 + accumulate) * size(dt)))
OP(rope,
   (void *x, enum dtype dt, const float *table, int64_t first, int T,
    const struct rope_shape *shape, bool inverse),
   (x, dt, table, first, T, shape, inverse),
   bytes(shape->N, shape->heads * shape->d_rope, 2 * size(dt)))

OP(attention_fwd,
   (void *out, float *lse, const void *q, const void *kv, const void *k_pe,
    const int32_t *doc_start, enum dtype dt, const struct attention_shape *shape),
   (out, lse, q, kv, k_pe, doc_start, dt, shape), attention(shape, dt, 2.0, 1))
OP(attention_bwd,
   (void *dq, void *dkv, void *dk_pe, const void *dout, const void *out, const float *lse,
    const void *q, const void *kv, const void *k_pe, const int32_t *doc_start, enum dtype dt,
    const struct attention_shape *shape),
   (dq, dkv, dk_pe, dout, out, lse, q, kv, k_pe, doc_start, dt, shape),
   attention(shape, dt, 5.0, 2))
OP(attention_cached,
   (void *out, const void *q, const void *latent, const void *kv_b, enum dtype dt,
    const struct cached_shape *shape),
   (out, q, latent, kv_b, dt, shape), cached(shape, dt))

OP(swiglu_fwd, (void *y, const void *gate, const void *up, enum dtype dt, int64_t n),
   (y, gate, up, dt, n), bytes(n, 1, 3 * size(dt)))
OP(swiglu_bwd,
   (void *dgate, void *dup, void *y, const void *dy, const void *gate, const void *up,
    enum dtype dt, int64_t n),
   (dgate, dup, y, dy, gate, up, dt, n), bytes(n, 1, (y ? 6 : 5) * size(dt)))
OP(embedding_fwd,
   (void *x, const void *table, const int32_t *id, enum dtype dt, int64_t N, int D, int row0,
    int n_rows),
   (x, table, id, dt, N, D, row0, n_rows), bytes(N, D, 2 * size(dt)))
OP(embedding_bwd,
   (float *dtable, const void *dx, const int32_t *id, enum dtype dt, int64_t N, int D, int row0,
    int n_rows),
   (dtable, dx, id, dt, N, D, row0, n_rows), bytes(N, D, size(dt) + 8))

OP(router_fwd,
   (float *score, int32_t *expert, float *weight, const float *logits, const float *bias,
    const int32_t *forced, const struct router_shape *shape),
   (score, expert, weight, logits, bias, forced, shape), bytes(shape->N, shape->E + shape->K, 8))
OP(router_bwd,
   (float *dlogits, const float *dweight, const float *score, const int32_t *expert,
    const float *coef, const struct sequence_span *span, const struct router_shape *shape),
   (dlogits, dweight, score, expert, coef, span, shape), bytes(shape->N, shape->E + shape->K, 8))
OP(balance_stats,
   (float *p_sum, int32_t *n_top, const float *score, const struct sequence_span *span,
    const struct router_shape *shape),
   (p_sum, n_top, score, span, shape), bytes(shape->N, shape->E, 4))
OP(balance_loss,
   (double *loss, float *coef, const float *p_sum, const int32_t *n_top, int64_t B, int T, int E,
    int K, float weight),
   (loss, coef, p_sum, n_top, B, T, E, K, weight), bytes(B, E, 12))
OP(bias_update, (float *bias, const int64_t *count, int E, float speed, bool centred),
   (bias, count, E, speed, centred), bytes(E, 1, 16))

OP(sort_by_expert,
   (int32_t * order, int32_t *place, int64_t *count, const int32_t *expert, int64_t M, int E),
   (order, place, count, expert, M, E), bytes(M, 1, 12))
OP(count_add, (int64_t * total, const int64_t *count, int E), (total, count, E), bytes(E, 1, 24))
OP(gather_rows,
   (void *dst, const void *src, const int32_t *index, int divisor, enum dtype dt, int64_t M, int D),
   (dst, src, index, divisor, dt, M, D), bytes(M, D, (1 + 1.0 / divisor) * size(dt)))
OP(combine_fwd,
   (void *y, const void *rows, const int32_t *place, const float *weight, const void *add0,
    const void *add1, enum dtype dt, int64_t N, int K, int D),
   (y, rows, place, weight, add0, add1, dt, N, K, D),
   bytes(N, D, (K + 1 + !!add0 + !!add1) * size(dt)))
OP(combine_bwd,
   (void *drows, float *dweight, const void *dy, const void *rows, const int32_t *place,
    const float *weight, enum dtype dt, int64_t N, int K, int D),
   (drows, dweight, dy, rows, place, weight, dt, N, K, D), bytes(N, D, (2 * K + 1) * size(dt)))

OP(cross_entropy_max, (float *max, const float *logits, int64_t n, int V), (max, logits, n, V),
   bytes(n, V, 4))
OP(cross_entropy_sum,
   (float *sum, float *target, const float *logits, const float *max, const int32_t *label,
    int64_t n, int V, int col0),
   (sum, target, logits, max, label, n, V, col0), bytes(n, V, 4))
OP(cross_entropy_loss,
   (float *loss, void *dlogits, enum dtype dt, const float *logits, const float *max,
    const float *sum, const float *target, const int32_t *label, float scale, int64_t n, int V,
    int col0),
   (loss, dlogits, dt, logits, max, sum, target, label, scale, n, V, col0),
   bytes(dlogits ? n : 0, V, 4 + size(dt)))

OP(adamw,
   (float *p, void *m, void *v, enum dtype m_dt, const float *g, int64_t n,
    const struct adamw_args *args, int32_t *bad),
   (p, m, v, m_dt, g, n, args, bad), bytes(n, 1, 12 + 4 * size(m_dt)))

const struct backend *profile_backend(const struct backend *be)
{
    static struct backend table;
    inner = be;
    record = (struct profile_record){0};
    counting = false;
    table = *be; /* memory, streams, events and measurements: as they are */
#define TAKE(op) table.op = profiled_##op
    BACKEND_OPERATIONS(TAKE);
    return &table;
}

void profile_start(void)
{
    counting = true;
}

void profile_stop(const struct profile_step *step)
{
    counting = false;
    record.n_steps++;
    record.sum.step_s += step->step_s;
    record.sum.data_s += step->data_s;
    record.sum.comm_s += step->comm_s;
}
