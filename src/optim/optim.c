/*
 * optim.c - one optimizer step over the parameter table: reduce, norm, clip, AdamW, gather; see
 * optim.h. Everything walks the parameters' pieces of this rank's shards (param_in_shard), so
 * padding between and behind the parameters is never touched and stays zero.
 */
#include "optim/optim.h"

#include "base/err.h"
#include "base/mem.h"
#include "optim/shard.h"

#include <float.h>
#include <math.h>

void optim_init(struct optim *opt, const struct config *cfg, const struct backend *be,
                struct stream *stream, struct comm *comm, struct param_table *params,
                struct arena *arena)
{
    *opt = (struct optim){.cfg = cfg, .be = be, .stream = stream, .comm = comm, .params = params};
    const size_t moment_bytes = dtype_bytes(cfg->optimizer.moments_dtype);
    for (int i = 0; i < N_BUCKETS; i++) {
        struct bucket *b = &params->bucket[i];
        if (b->n == 0) continue;
        const size_t n = (size_t)b->n_shard;
        opt->m[i] = arena_push(arena, n * moment_bytes);
        opt->v[i] = arena_push(arena, n * moment_bytes);
        b->master = b->dtype == DTYPE_F32 ? elem(b->w, DTYPE_F32, b->shard0)
                                          : arena_push(arena, n * sizeof(float));
        RUN(opt, zero, opt->m[i], n * moment_bytes);
        RUN(opt, zero, opt->v[i], n * moment_bytes);
    }
    const size_t parts_bytes = sizeof(double) * (size_t)params->n_params;
    opt->norm_parts = arena_push(arena, parts_bytes);
    opt->bad = arena_push(arena, sizeof *opt->bad);
    opt->h_norm_parts = mem_alloc(parts_bytes, "gradient norms");
    opt->h_chunk = mem_alloc(sizeof(float) * OPTIM_CHUNK, "weight staging");
}

void optim_free(struct optim *opt)
{
    mem_free(opt->h_chunk);
    mem_free(opt->h_norm_parts);
    *opt = (struct optim){0};
}

void optim_reduce_gradients(struct optim *opt)
{
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &opt->params->bucket[i];
        if (b->n == 0) continue;
        comm_reduce_scatter(opt->comm, b->reduce_axis, elem(b->grad, DTYPE_F32, b->shard0), b->grad,
                            b->n_shard, DTYPE_F32);
    }
}

void optim_fetch_parts(struct optim *opt)
{
    RUN(opt, copy, opt->h_norm_parts, opt->norm_parts,
        sizeof(double) * (size_t)opt->params->n_params);
    RUN(opt, stream_sync);
}

double optim_grad_norm(struct optim *opt)
{
    const struct param_table *t = opt->params;
    RUN(opt, zero, opt->norm_parts, sizeof(double) * (size_t)t->n_params);
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        int64_t first, count;
        if (param_in_shard(p, &t->bucket[p->bucket], &first, &count))
            RUN(opt, sum_squares, opt->norm_parts + i, p->grad + first, count);
    }
    optim_fetch_parts(opt);
    double sum = 0.0;
    for (int i = 0; i < t->n_params; i++) sum += opt->h_norm_parts[i];
    comm_all_reduce_host(opt->comm, AXIS_WORLD, &sum, 1, REDUCE_SUM);
    return sqrt(sum);
}

/* norm_parts of this rank's own, not yet reduced gradient, without the part that the reduced shard
 * has overwritten, which becomes zero. */
static void sum_own_squares(struct optim *opt)
{
    const struct param_table *t = opt->params;
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        int64_t first, count;
        if (param_in_shard(p, &t->bucket[p->bucket], &first, &count))
            opt->be->zero(opt->stream, p->grad + first, sizeof(float) * (size_t)count);
        opt->be->sum_squares(opt->stream, opt->norm_parts + i, p->grad, p->n);
    }
    optim_fetch_parts(opt);
}

/* The first parameter whose part of the squared norm is not below limit, or is NaN. */
static int first_bad_part(const struct optim *opt, double limit)
{
    for (int i = 0; i < opt->params->n_params; i++)
        if (!(opt->h_norm_parts[i] < limit)) return i;
    return opt->params->n_params;
}

struct optim_fault optim_find_fault(struct optim *opt, double grad_norm)
{
    const int n_params = opt->params->n_params;
    const int size = opt->comm->mesh->size, rank = opt->comm->mesh->rank;
    /* Of a finite sum of squares at least one part reaches the mean, so half of it for sure. */
    const double limit =
        isfinite(grad_norm) ? 0.5 * grad_norm * grad_norm / ((double)n_params * size) : INFINITY;
    const int reduced = first_bad_part(opt, limit); /* left there by optim_grad_norm */
    sum_own_squares(opt);
    const int own = first_bad_part(opt, limit);
    /* In the order of tensors; at the same tensor a rank whose own gradient is bad before a shard's
     * owner; then in the order of ranks. */
    const int64_t mine = own <= reduced ? own * 2 : reduced * 2 + 1;
    double negated = -(double)(mine * size + rank); /* the minimum is minus the maximum of these */
    comm_all_reduce_host(opt->comm, AXIS_WORLD, &negated, 1, REDUCE_MAX);
    const int64_t first = (int64_t)-negated, param = first / size / 2;
    CHECK(param < n_params, "no gradient was found that explains a norm of %g", grad_norm);
    return (struct optim_fault){&opt->params->param[param], (int)(first % size)};
}

static double clip_coefficient(double clip, double norm)
{
    if (clip <= 0.0) return 1.0;
    const double c = clip / (norm + 1e-6);
    return c < 1.0 ? c : 1.0;
}

bool optim_norm_fits(const struct optim *opt, double grad_norm)
{
    const double clipped = clip_coefficient(opt->cfg->optimizer.clip, grad_norm) * grad_norm;
    return clipped * clipped < FLT_MAX; /* false for NaN, too */
}

static void update_shards(struct optim *opt, struct adamw_args *args)
{
    const struct param_table *t = opt->params;
    const enum dtype m_dt = opt->cfg->optimizer.moments_dtype;
    RUN(opt, zero, opt->bad, sizeof *opt->bad);
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        const struct bucket *b = &t->bucket[p->bucket];
        int64_t first, count;
        if (!param_in_shard(p, b, &first, &count)) continue;
        const int64_t at = p->offset + first - b->shard0; /* place in the shard */
        args->weight_decay = p->decay ? opt->cfg->optimizer.weight_decay : 0.0;
        RUN(opt, adamw, b->master + at, elem(opt->m[p->bucket], m_dt, at),
            elem(opt->v[p->bucket], m_dt, at), m_dt, p->grad + first, count, args, opt->bad);
    }
    RUN(opt, copy, &opt->h_bad, opt->bad, sizeof opt->h_bad);
}

void optim_gather_weights(struct optim *opt)
{
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &opt->params->bucket[i];
        if (b->n == 0) continue;
        void *mine = elem(b->w, b->dtype, b->shard0);
        if (b->dtype != DTYPE_F32) RUN(opt, cast, mine, b->dtype, b->master, DTYPE_F32, b->n_shard);
        comm_all_gather(opt->comm, b->reduce_axis, b->w, mine, b->n_shard, b->dtype);
    }
}

void optim_zero_gradients(struct optim *opt)
{
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &opt->params->bucket[i];
        if (b->n) RUN(opt, zero, b->grad, (size_t)b->n * sizeof(float));
    }
}

bool optim_step(struct optim *opt, int64_t update, double lr, double grad_norm)
{
    const struct config_optimizer *o = &opt->cfg->optimizer;
    CHECK(optim_norm_fits(opt, grad_norm), "gradient norm %g", grad_norm);
    struct adamw_args args = {.lr = lr,
                              .beta1 = o->beta1,
                              .beta2 = o->beta2,
                              .eps = o->eps,
                              .correction1 = 1.0 - pow(o->beta1, (double)update),
                              .correction2 = 1.0 - pow(o->beta2, (double)update),
                              .grad_scale = clip_coefficient(o->clip, grad_norm)};
    update_shards(opt, &args);
    optim_gather_weights(opt);
    optim_zero_gradients(opt);
    RUN(opt, stream_sync);
    return opt->h_bad == 0;
}
