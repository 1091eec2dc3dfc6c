/*
 * weights.c - the initial values of all parameters, and a hash of their values. Both are made
 * element by element from (parameter name, global index): they do not know the mesh, so every
 * layout starts from the same bits and equal weights have equal hashes.
 */
#include "base/err.h"
#include "base/rng.h"
#include "optim/shard.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK = 4096 }; /* elements a thread does at once */

/* Local elements i .. i + result - 1 (at most `most`) have the global numbers *global and on. */
static int64_t next_run(const struct param *p, const struct mesh *mesh, int64_t i, int64_t most,
                        int64_t *global)
{
    *global = param_global_index(p, mesh, i);
    if (p->split_dim <= 0) return most; /* whole, or a block of consecutive rows */
    int64_t inner = 1;
    for (int d = p->split_dim; d < p->n_dims; d++) inner *= p->local_dim[d];
    const int64_t left = inner - i % inner;
    return left < most ? left : most;
}

/* x[j] = initial value of local element first + j, j < n. */
static void make_values(float *x, const struct optim *opt, const struct param *p, int64_t first,
                        int64_t n)
{
    const uint64_t key = rng_key((uint64_t)opt->cfg->run.seed, p->name);
    const double std = opt->cfg->model.initializer_range;
    for (int64_t done = 0; done < n;) {
        int64_t global;
        const int64_t run = next_run(p, opt->comm->mesh, first + done, n - done, &global);
        rng_fill_normal(x + done, key, (uint64_t)global, run, std);
        done += run;
    }
}

static void fill_piece(struct optim *opt, const struct param *p, int64_t first, int64_t count,
                       int threads)
{
    const struct bucket *b = &opt->params->bucket[p->bucket];
    for (int64_t at = first; at < first + count; at += OPTIM_CHUNK) {
        const int64_t left = first + count - at;
        const int64_t n = left < OPTIM_CHUNK ? left : OPTIM_CHUNK;
#pragma omp parallel for num_threads(threads)
        for (int64_t j = 0; j < n; j += BLOCK) {
            const int64_t m = n - j < BLOCK ? n - j : BLOCK;
            if (p->init == INIT_NORMAL)
                make_values(opt->h_chunk + j, opt, p, at + j, m);
            else
                for (int64_t k = 0; k < m; k++) opt->h_chunk[j + k] = 1.0f;
        }
        opt->be->copy(opt->stream, b->master + (p->offset + at - b->shard0), opt->h_chunk,
                      (size_t)n * sizeof(float));
        opt->be->stream_sync(opt->stream); /* the chunk is filled again */
    }
}

void optim_zero_weights(struct optim *opt)
{
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &opt->params->bucket[i];
        if (b->n) opt->be->zero(opt->stream, b->master, (size_t)b->n_shard * sizeof(float));
    }
}

void optim_init_weights(struct optim *opt)
{
    const struct param_table *t = opt->params;
    const int threads = mesh_threads(opt->comm->mesh, opt->cfg);
    optim_zero_weights(opt);
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        int64_t first, count;
        if (param_in_shard(p, &t->bucket[p->bucket], &first, &count))
            fill_piece(opt, p, first, count, threads);
    }
    optim_gather_weights(opt);
    optim_zero_gradients(opt);
}

/* Sum of the element hashes of local elements first .. first + n - 1, whose values are x. */
uint64_t optim_hash_values(const float *x, const struct param *p, const struct mesh *mesh,
                           int64_t first, int64_t n)
{
    const uint64_t key = rng_key(0, p->name);
    uint64_t sum = 0;
    for (int64_t done = 0; done < n;) {
        int64_t global;
        const int64_t run = next_run(p, mesh, first + done, n - done, &global);
        for (int64_t j = 0; j < run; j++) {
            uint32_t bits;
            memcpy(&bits, &x[done + j], sizeof bits);
            sum += rng_mix(rng_mix(key + RNG_STEP * (uint64_t)(global + j + 1)) ^ bits);
        }
        done += run;
    }
    return sum;
}

static uint64_t hash_piece(struct optim *opt, const struct param *p, const float *master,
                           int64_t first, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t at = 0; at < count; at += OPTIM_CHUNK) {
        const int64_t n = count - at < OPTIM_CHUNK ? count - at : OPTIM_CHUNK;
        opt->be->copy(opt->stream, opt->h_chunk, master + at, (size_t)n * sizeof(float));
        opt->be->stream_sync(opt->stream);
        sum += optim_hash_values(opt->h_chunk, p, opt->comm->mesh, first + at, n);
    }
    return sum;
}

void optim_param_hash(struct optim *opt, uint64_t *hash, double *l2)
{
    const struct param_table *t = opt->params;
    uint64_t sum = 0;
    opt->be->zero(opt->stream, opt->norm_parts, sizeof(double) * (size_t)t->n_params);
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        const struct bucket *b = &t->bucket[p->bucket];
        int64_t first, count;
        if (!param_in_shard(p, b, &first, &count)) continue;
        const float *master = b->master + p->offset + first - b->shard0;
        sum += hash_piece(opt, p, master, first, count);
        opt->be->sum_squares(opt->stream, opt->norm_parts + i, master, count);
    }
    optim_fetch_parts(opt);
    double squares = 0.0;
    for (int i = 0; i < t->n_params; i++) squares += opt->h_norm_parts[i];
    comm_all_reduce_host(opt->comm, AXIS_WORLD, &squares, 1, REDUCE_SUM);
    *l2 = sqrt(squares);
    *hash = comm_sum_hash(opt->comm, sum);
}

/* Of the weights of a bucket, as this rank has them all. */
static uint64_t hash_bucket(struct optim *opt, const struct bucket *b)
{
    const int64_t bytes = b->n * (int64_t)dtype_bytes(b->dtype);
    const int64_t most = OPTIM_CHUNK * (int64_t)sizeof(float);
    uint64_t hash = 0;
    for (int64_t at = 0; at < bytes; at += most) {
        const size_t n = (size_t)(bytes - at < most ? bytes - at : most);
        opt->be->copy(opt->stream, opt->h_chunk, (const char *)b->w + at, n);
        opt->be->stream_sync(opt->stream);
        hash = XXH3_64bits_withSeed(opt->h_chunk, n, hash);
    }
    return hash;
}

bool optim_replicas_agree(struct optim *opt)
{
    bool agree = true;
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &opt->params->bucket[i];
        if (b->n == 0) continue;
        const uint64_t hash = hash_bucket(opt, b);
        const double high = (double)(hash >> 32), low = (double)(hash & 0xffffffffu);
        double most[4] = {high, low, -high, -low}; /* equal when the maximum is the minimum */
        comm_all_reduce_host(opt->comm, b->reduce_axis, most, 4, REDUCE_MAX);
        agree = agree && most[0] == -most[2] && most[1] == -most[3];
    }
    return comm_lowest_rank(opt->comm, !agree) == opt->comm->mesh->size;
}

/* The first of n numbers in backend memory that BF16 has no finite number for; n: none is. */
static int64_t find_spoiled(struct optim *opt, const void *x, enum dtype dt, int64_t n,
                            double *value)
{
    const size_t size = dtype_bytes(dt);
    for (int64_t done = 0; done < n; done += OPTIM_CHUNK) {
        const int64_t left = n - done, m = left < OPTIM_CHUNK ? left : OPTIM_CHUNK;
        opt->be->copy(opt->stream, opt->h_chunk, elem(x, dt, done), (size_t)m * size);
        opt->be->stream_sync(opt->stream);
        for (int64_t i = 0; i < m; i++) {
            *value = dt == DTYPE_F32 ? (double)opt->h_chunk[i]
                                     : (double)bf16_to_f32(((const bf16 *)opt->h_chunk)[i]);
            if (!(fabs(*value) < (double)ADAMW_LIMIT)) return done + i;
        }
    }
    return n;
}

/* Of this rank, in its shard of p. */
static bool find_in_param(struct optim *opt, const struct param *p, struct optim_spoiled *found)
{
    static const char *const names[] = {"weight", "mean", "mean square"};
    const struct bucket *b = &opt->params->bucket[p->bucket];
    const enum dtype m_dt = opt->cfg->optimizer.moments_dtype;
    const void *const of[] = {b->master, opt->m[p->bucket], opt->v[p->bucket]};
    int64_t first, count;
    if (!param_in_shard(p, b, &first, &count)) return false;
    for (int kind = 0; kind < 3; kind++) {
        const enum dtype dt = kind == 0 ? DTYPE_F32 : m_dt;
        const void *at = elem(of[kind], dt, p->offset + first - b->shard0);
        const int64_t i = find_spoiled(opt, at, dt, count, &found->value);
        if (i == count) continue;
        found->what = names[kind];
        found->element = param_global_index(p, opt->comm->mesh, first + i);
        return true;
    }
    return false;
}

struct optim_spoiled optim_find_spoiled(struct optim *opt)
{
    struct optim_spoiled found = {0};
    const int n_params = opt->params->n_params, size = opt->comm->mesh->size;
    int mine = 0;
    while (mine < n_params && !find_in_param(opt, &opt->params->param[mine], &found)) mine++;
    /* The minimum is minus the maximum of these. */
    double negated = -((double)mine * size + opt->comm->mesh->rank);
    comm_all_reduce_host(opt->comm, AXIS_WORLD, &negated, 1, REDUCE_MAX);
    const int64_t lowest = (int64_t)-negated;
    CHECK(lowest / size < n_params, "no weight or moment was found that is not finite");
    found.param = &opt->params->param[lowest / size];
    found.rank = (int)(lowest % size);
    return found;
}
