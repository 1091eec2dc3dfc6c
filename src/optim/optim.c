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
#include <stdio.h>

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

/* For each parameter whether this rank's own, not yet reduced gradient has a value that is not
 * finite. The part that the reduced shard has overwritten is not looked at. */
static void find_bad_sources(struct optim *opt)
{
    const struct param_table *t = opt->params;
    opt->be->zero(opt->stream, opt->norm_parts, sizeof(double) * (size_t)t->n_params);
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        int64_t first, count, end;
        if (!param_in_shard(p, &t->bucket[p->bucket], &first, &count)) first = count = 0;
        end = first + count;
        double *part = opt->norm_parts + i;
        opt->be->sum_squares(opt->stream, part, p->grad + end, p->n - end);
        if (first == 0) continue;
        opt->be->stream_sync(opt->stream);
        double behind = 0.0;
        opt->be->copy(opt->stream, &behind, part, sizeof behind);
        opt->be->stream_sync(opt->stream);
        if (isfinite(behind)) opt->be->sum_squares(opt->stream, part, p->grad, first);
    }
    optim_fetch_parts(opt);
}

static int first_bad_part(const struct optim *opt)
{
    for (int i = 0; i < opt->params->n_params; i++)
        if (!isfinite(opt->h_norm_parts[i])) return i;
    return opt->params->n_params;
}

_Noreturn void optim_die_nonfinite(struct optim *opt, int64_t step)
{
    const struct param_table *t = opt->params;
    MPI_Comm world = opt->comm->mesh->axis[AXIS_WORLD].comm;
    const int reduced = first_bad_part(opt); /* left there by optim_grad_norm */
    find_bad_sources(opt);
    const int own = first_bad_part(opt);
    /* Order by tensor; at the same tensor a rank whose own gradient is bad before a shard's owner.
     */
    const int mine = own <= reduced ? own * 2 : reduced * 2 + 1;
    double negated = -mine; /* the minimum is minus the maximum of these */
    comm_all_reduce_host(opt->comm, AXIS_WORLD, &negated, 1, REDUCE_MAX);
    const int first = (int)-negated, tensor = first / 2;
    CHECK(tensor < t->n_params, "step %lld: no gradient was found that is not finite",
          (long long)step);
    char why[256];
    snprintf(why, sizeof why, "step %lld: the gradient of %s is not finite; no weight has changed",
             (long long)step, t->param[tensor].name);
    AGREE(world, mine != first, CODE_INTERNAL, why);
    DIE(CODE_INTERNAL, "%s", why); /* not reached: one rank has mine == first */
}

static double clip_coefficient(double clip, double norm)
{
    if (clip <= 0.0) return 1.0;
    const double c = clip / (norm + 1e-6);
    return c < 1.0 ? c : 1.0;
}

static void update_shards(struct optim *opt, struct adamw_args *args)
{
    const struct param_table *t = opt->params;
    const enum dtype m_dt = opt->cfg->optimizer.moments_dtype;
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        const struct bucket *b = &t->bucket[p->bucket];
        int64_t first, count;
        if (!param_in_shard(p, b, &first, &count)) continue;
        const int64_t at = p->offset + first - b->shard0; /* place in the shard */
        args->weight_decay = p->decay ? opt->cfg->optimizer.weight_decay : 0.0;
        RUN(opt, adamw, b->master + at, elem(opt->m[p->bucket], m_dt, at),
            elem(opt->v[p->bucket], m_dt, at), m_dt, p->grad + first, count, args);
    }
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

void optim_step(struct optim *opt, int64_t step, double lr, double grad_norm)
{
    const struct config_optimizer *o = &opt->cfg->optimizer;
    const double scale = clip_coefficient(o->clip, grad_norm);
    const double clipped = scale * grad_norm;
    /* Without a clip a finite gradient could still give an infinite second moment. */
    CHECK(clipped * clipped < FLT_MAX,
          "step %lld: gradient norm %g, its square does not fit the F32 second moment",
          (long long)step, clipped);
    struct adamw_args args = {.lr = lr,
                              .beta1 = o->beta1,
                              .beta2 = o->beta2,
                              .eps = o->eps,
                              .correction1 = 1.0 - pow(o->beta1, (double)step),
                              .correction2 = 1.0 - pow(o->beta2, (double)step),
                              .grad_scale = scale};
    update_shards(opt, &args);
    optim_gather_weights(opt);
    optim_zero_gradients(opt);
}
