/*
 * setup.c - from configuration to a run that is ready for its first step: the plan of its memory,
 * then one allocation per role, then weights, data and reports.
 */
#include "base/err.h"
#include "base/mem.h"
#include "train/run.h"

#include <stdarg.h>
#include <string.h>

#ifndef DSV3_VERSION
#define DSV3_VERSION "unknown"
#endif

/* Optimizer state and the staging of its collectives, by running them against counting arenas. */
static void plan_optimizer(struct run *run, size_t *optimizer, size_t *staging)
{
    struct arena opt_arena, staging_arena;
    struct comm comm;
    struct optim optim;
    arena_init(&opt_arena, "optimizer", NULL, 0, false);
    arena_init(&staging_arena, "staging", NULL, 0, false);
    comm_init(&comm, &run->mesh, run->be, NULL, &staging_arena, true);
    optim_init(&optim, run->cfg, run->be, NULL, &comm, &run->params, &opt_arena);
    optim_reduce_gradients(&optim);
    *optimizer = opt_arena.peak;
    *staging = staging_arena.peak;
    optim_free(&optim);
}

static void make_plan(struct run *run)
{
    struct memory_plan *plan = &run->plan;
    struct arena weights, grads;
    size_t staging;
    arena_init(&weights, "weights", NULL, 0, false);
    arena_init(&grads, "gradients", NULL, 0, false);
    param_table_place(&run->params, &weights, &grads);
    plan->weights = weights.peak;
    plan->gradients = grads.peak;
    plan_optimizer(run, &plan->optimizer, &staging);
    plan->expected = model_plan(run->cfg, &run->mesh, &run->params, 1.0);
    plan->reserved = model_plan(run->cfg, &run->mesh, &run->params, 0.0);
    struct model_memory *memory[] = {&plan->expected, &plan->reserved};
    for (int i = 0; i < 2; i++)
        if (memory[i]->staging < staging) memory[i]->staging = staging;
}

/* Most faults of a configuration are seen by all ranks: one of them says so. Collective. */
__attribute__((format(printf, 2, 3))) static void agree_config(bool ok, const char *fmt, ...)
{
    char why[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    AGREE(MPI_COMM_WORLD, ok, CODE_CONFIG, why);
}

/* All ranks of a machine together must fit; checked before anything is taken. */
static void check_memory(const struct run *run)
{
    const struct memory_plan *p = &run->plan;
    const size_t rank_bytes = p->weights + p->gradients + p->optimizer + p->expected.state +
                              p->expected.stack + p->expected.scratch + p->expected.staging;
    const size_t node_bytes = rank_bytes * (size_t)run->mesh.machine_ranks;
    agree_config(node_bytes <= mem_physical(),
                 "this run takes %.2f GiB a rank on %d ranks of this machine, which has %.2f GiB",
                 (double)rank_bytes / (1 << 30), run->mesh.machine_ranks,
                 (double)mem_physical() / (1 << 30));
}

static void take_arena(const struct run *run, struct arena *arena, const char *name, size_t bytes)
{
    const bool poison = run->cfg->debug.poison_memory && run->be == &backend_cpu;
    arena_init(arena, name, run->be->alloc(bytes, name), bytes, poison);
}

/* Most micro-batches of one step, over all stages of the batch ramp. */
static int most_micro(const struct config *cfg, const struct mesh *mesh)
{
    double most = cfg->train.global_batch;
    const struct stages *ramp = &cfg->train.global_batch_stages;
    for (int i = 0; i < ramp->n; i++)
        if (ramp->at[i].value > most) most = ramp->at[i].value;
    return (int)most / (cfg->train.micro_batch * mesh->dp);
}

static void take_buffers(struct run *run)
{
    const struct config *cfg = run->cfg;
    const size_t B = (size_t)cfg->train.micro_batch, T = (size_t)cfg->data.sequence_length;
    run->max_micro = most_micro(cfg, &run->mesh);
    const size_t n = (size_t)run->max_micro * B;
    const size_t n_moe = (size_t)run->model.n_moe;
    run->token = mem_alloc(n * (T + 1) * sizeof(int32_t), "tokens of a step");
    run->doc_start = mem_alloc(n * (T + 1) * sizeof(int32_t), "documents of a step");
    run->sample = mem_alloc(n * sizeof(int64_t), "samples of a step");
    run->wanted = mem_alloc(B * sizeof(int64_t), "samples of a request");
    run->valid = mem_alloc(B * sizeof(bool), "sequences of a round");
    run->expert_total = mem_alloc(n_moe * (size_t)run->model.E * sizeof(int64_t), "expert counts");
    run->expert_load = mem_alloc(n_moe * sizeof(double), "expert loads");
    run->h_bias = mem_alloc(n_moe * (size_t)run->model.E * sizeof(float), "selection biases");
    run->h_loss = mem_alloc((size_t)(run->model.n_mtp + 2) * sizeof(double), "losses");
}

/* Samples that all steps of the run take. */
static int64_t samples_wanted(const struct config *cfg)
{
    struct progress at = {0};
    while (at.step < cfg->train.steps) {
        const int batch = schedule_global_batch(cfg, &at);
        at.step++;
        at.samples += batch;
        at.tokens += (int64_t)batch * cfg->data.sequence_length;
    }
    return at.samples;
}

static void open_data(struct run *run)
{
    const struct config *cfg = run->cfg;
    const int T = cfg->data.sequence_length, V = cfg->model.vocab_size;
    run->train_data = dataset_open(&cfg->data.train, "train", T, V, &run->mesh);
    if (cfg->data.max_epochs > 0) {
        const int64_t have = dataset_samples(run->train_data) * cfg->data.max_epochs;
        const int64_t want = samples_wanted(cfg);
        agree_config(
            want <= have, "train.steps %lld take %lld sequences, data.max_epochs %d gives %lld",
            (long long)cfg->train.steps, (long long)want, cfg->data.max_epochs, (long long)have);
    }
    run->train_reader = reader_init(run->train_data, (uint64_t)cfg->run.seed, cfg->data.shuffle,
                                    cfg->train.micro_batch, 2 * run->max_micro);
    if (cfg->data.heldout.n == 0) return;
    run->heldout_data = dataset_open(&cfg->data.heldout, "heldout", T, V, &run->mesh);
    run->heldout_reader = reader_init(run->heldout_data, 0, false, cfg->train.micro_batch, 2);
}

/* All ranks measure at the same time, as they will compute. Threads that take turns on a core each
 * see all of it; together they have it once. */
static void measure_peak(struct run *run)
{
    const double turns = (double)run->threads * run->mesh.core_sharers / mesh_cores();
    MPI_CHECK(MPI_Barrier(MPI_COMM_WORLD));
    run->peak_flops = run->be->measure_peak(run->stream, run->cfg->train.compute_dtype);
    if (turns > 1) run->peak_flops /= turns;
    comm_all_reduce_host(&run->comm, AXIS_WORLD, &run->peak_flops, 1, REDUCE_SUM);
}

static void open_metrics(struct run *run)
{
    static char source[80]; /* the report borrows it for the whole run */
    snprintf(source, sizeof source, "measured %s products, %d ranks x %d threads",
             run->cfg->train.compute_dtype == DTYPE_BF16 ? "BF16" : "F32", run->mesh.size,
             run->threads);
    const struct run_identity id = {
        .version = DSV3_VERSION,
        .config_hash = config_hash(run->cfg),
        .train_fingerprint = dataset_fingerprint(run->train_data),
        .heldout_fingerprint = run->heldout_data ? dataset_fingerprint(run->heldout_data) : 0,
        .params_total = run->counts.params_total + run->counts.mtp_params,
        .params_active = run->counts.params_active,
        .flop_per_token = run->counts.flop_exact,
        .peak_flops = run->peak_flops,
        .peak_source = source};
    run->metrics = metrics_open(run->cfg, &run->mesh, &id);
}

static const struct backend *choose_backend(const struct config *cfg)
{
    const bool cuda = cfg->run.backend == RUN_BACKEND_CUDA;
    const struct backend *be = backend_find(cuda ? "cuda" : "cpu");
    agree_config(be, "run.backend cuda: this program was built without CUDA");
    backend_check(be);
    return be;
}

void run_init(struct run *run, const struct config *cfg)
{
    memset(run, 0, sizeof *run);
    run->cfg = cfg;
    mesh_init(&run->mesh, cfg);
    run->be = choose_backend(cfg);
    run->threads = mesh_threads(&run->mesh, cfg);
    run->stream = run->be->stream_create(run->threads);
    param_table_init(&run->params, cfg, &run->mesh);
    agree_config(!cfg->debug.nan_step || param_find(&run->params, cfg->debug.nan_param),
                 "debug.nan_param %s: no such parameter", cfg->debug.nan_param);
    model_count(&run->counts, cfg);
    make_plan(run);
    check_memory(run);

    take_arena(run, &run->staging, "staging", run->plan.reserved.staging);
    take_arena(run, &run->weights, "weights", run->plan.weights);
    take_arena(run, &run->grads, "gradients", run->plan.gradients);
    take_arena(run, &run->optimizer, "optimizer", run->plan.optimizer);
    param_table_place(&run->params, &run->weights, &run->grads);
    comm_init(&run->comm, &run->mesh, run->be, run->stream, &run->staging, false);
    optim_init(&run->optim, cfg, run->be, run->stream, &run->comm, &run->params, &run->optimizer);
    const struct model_parts parts = {cfg,         &run->mesh, run->be,
                                      run->stream, &run->comm, &run->params};
    model_init(&run->model, &parts, &run->plan.reserved);
    take_buffers(run);
    open_data(run);
    measure_peak(run);
    open_metrics(run);
    run_print_summary(run);
    optim_init_weights(&run->optim);
    comm_take_count(&run->comm);
}

void run_free(struct run *run)
{
    metrics_close(run->metrics);
    mem_thaw();
    if (run->heldout_data) {
        reader_free(run->heldout_reader);
        dataset_close(run->heldout_data);
    }
    reader_free(run->train_reader);
    dataset_close(run->train_data);
    void *buffers[] = {run->token,        run->doc_start,   run->sample, run->wanted, run->valid,
                       run->expert_total, run->expert_load, run->h_bias, run->h_loss};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) mem_free(buffers[i]);
    model_free(&run->model);
    optim_free(&run->optim);
    comm_free(&run->comm);
    param_table_free(&run->params);
    struct arena *arenas[] = {&run->optimizer, &run->grads, &run->weights, &run->staging};
    for (int i = 0; i < 4; i++) run->be->free(arenas[i]->base);
    run->be->stream_destroy(run->stream);
    mesh_free(&run->mesh);
}
