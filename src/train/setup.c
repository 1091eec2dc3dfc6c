/*
 * setup.c - from configuration to a run that is ready for its first step: the plan of its memory
 * (plan.c), then one allocation per role, then data, reports and weights.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/text.h"
#include "base/version.h"
#include "topo/device.h"
#include "topo/wait.h"
#include "train/owner.h"
#include "train/restore.h"
#include "train/run.h"
#include "train/samples.h"
#include "train/save.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

/* Most faults are seen by all ranks: one of them says so. Collective. */
__attribute__((format(printf, 3, 4))) static void agree(bool ok, enum exit_code code,
                                                        const char *fmt, ...)
{
    char why[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    AGREE(MPI_COMM_WORLD, ok, code, why);
}

/* All ranks of a machine together must fit what it and their control groups have; checked before
 * anything is allocated. */
static void check_memory(struct run *run)
{
    const double gib = 1 << 30;
    const int n = run->mesh.machine_ranks;
    char name[MEMORY_BOUND_NAME];
    struct memory_fit *fit = &run->memory_fit;
    struct memory_claim mine, *all = mem_alloc(sizeof mine * (size_t)n, "memory of the ranks here");
    memory_claim_init(&mine, memory_total(&run->plan.balanced), "");
    mesh_gather_machine(&run->mesh, &mine, sizeof mine, all, "gathering of memory limits");
    memory_fit_find(fit, all, n, run->mesh.machine_rank);
    mem_free(all);
    memory_bound_name(&fit->bound, name, "");
    agree(fit->bytes <= fit->bound.bytes, CODE_CONFIG,
          "this run needs %.2f GiB for %d rank%s (%.2f GiB a rank), more than the %.2f GiB of %s",
          (double)fit->bytes / gib, fit->n, text_s(fit->n), (double)mine.bytes / gib,
          (double)fit->bound.bytes / gib, name);
}

static void take_buffers(struct run *run)
{
    const struct config *cfg = run->cfg;
    const size_t B = (size_t)cfg->train.micro_batch, T = (size_t)cfg->data.sequence_length;
    run->max_micro = schedule_micro_batches(cfg, schedule_largest_batch(cfg), run->mesh.dp);
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

static void take_arena(const struct run *run, struct arena *arena, const struct memory *memory,
                       enum memory_role role)
{
    backend_take_arena(run->be, arena, memory_role_name(role), run->be ? memory->role[role] : 0,
                       run->cfg->debug.poison_memory);
}

void run_place_model(struct run *run, const struct memory *memory, int cache_tokens)
{
    take_arena(run, &run->staging, memory, ROLE_STAGING);
    take_arena(run, &run->weights, memory, ROLE_WEIGHTS);
    param_table_init(&run->params, run->cfg, &run->mesh);
    param_table_place(&run->params, &run->weights, &run->grads);
    comm_init(&run->comm, &run->mesh, run->be, run->stream, &run->staging);
    run->comm.check_rows = run->cfg->debug.check_exchange;
    const struct model_parts parts = {.cfg = run->cfg,
                                      .mesh = &run->mesh,
                                      .be = run->be,
                                      .stream = run->stream,
                                      .comm = &run->comm,
                                      .params = &run->params,
                                      .cache_tokens = cache_tokens,
                                      .worst_routing = run->worst_routing};
    model_init(&run->model, &parts, memory ? &memory->activations : NULL);
}

void run_place(struct run *run, const struct memory *memory)
{
    const struct config *cfg = run->cfg;
    take_arena(run, &run->grads, memory, ROLE_GRADIENTS);
    take_arena(run, &run->optimizer, memory, ROLE_OPTIMIZER);
    take_arena(run, &run->snapshot, memory, ROLE_CHECKPOINT);
    run_place_model(run, memory, cfg->train.sample_every > 0 ? cfg->data.sequence_length : 0);
    optim_init(&run->optim, cfg, run->be, run->stream, &run->comm, &run->params, &run->optimizer);
    take_buffers(run);
    save_place(run);
}

void run_unplace(struct run *run)
{
    void *buffers[] = {run->token,        run->doc_start,   run->sample, run->wanted, run->valid,
                       run->expert_total, run->expert_load, run->h_bias, run->h_loss};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) mem_free(buffers[i]);
    model_free(&run->model);
    optim_free(&run->optim);
    comm_free(&run->comm);
    param_table_free(&run->params);
    struct arena *arenas[] = {&run->snapshot, &run->optimizer, &run->grads, &run->weights,
                              &run->staging};
    for (size_t i = 0; run->be && i < sizeof arenas / sizeof *arenas; i++)
        run->be->free(arenas[i]->base);
}

struct memory run_memory(const struct run *run)
{
    const struct model_memory a = {run->model.state.peak, run->model.stack.peak,
                                   run->model.scratch.peak};
    return (struct memory){.role = {[ROLE_WEIGHTS] = run->weights.peak,
                                    [ROLE_GRADIENTS] = run->grads.peak,
                                    [ROLE_OPTIMIZER] = run->optimizer.peak,
                                    [ROLE_ACTIVATIONS] = a.state + a.stack + a.scratch,
                                    [ROLE_STAGING] = run->staging.peak,
                                    [ROLE_CHECKPOINT] = run->snapshot.peak},
                           .activations = a};
}

int64_t run_end_samples(const struct run *run)
{
    const int64_t first = run->progress.samples;
    return ranges_after(&run->skip, first, schedule_end(run->cfg, &run->progress).samples - first);
}

void run_check_epochs(const struct run *run)
{
    const struct config *cfg = run->cfg;
    const struct dataset *ds = run->train_data;
    const int n = cfg->data.max_epochs > 0 ? dataset_sources(ds) : 0;
    const int64_t all = run_end_samples(run);

    for (int s = 0; s < n; s++) {
        const struct source_info source = dataset_source_info(ds, s);
        const int64_t have = source.n_samples * cfg->data.max_epochs;
        const int64_t want = dataset_taken(ds, s, all);
        agree(want <= have, CODE_CONFIG,
              "train.steps %lld take %lld sequences%s%s, data.max_epochs %d gives %lld",
              (long long)cfg->train.steps, (long long)want, n > 1 ? " of " : "",
              n > 1 ? source.path : "", cfg->data.max_epochs, (long long)have);
    }
}

/* An export names the model's ids: say so when the data have others. */
static void compare_ids(const struct config_model *m, struct special_ids data)
{
    const struct {
        const char *key;
        int model, data;
    } ids[] = {{"bos", m->bos_token_id, data.bos},
               {"eos", m->eos_token_id, data.eod},
               {"pad", m->pad_token_id, data.pad}};
    for (int i = 0; i < 3; i++)
        if (ids[i].model >= 0 && ids[i].data >= 0 && ids[i].model != ids[i].data)
            warn_line("model.%s_token_id is %d, but data.train has %d for it: exports will name %d",
                      ids[i].key, ids[i].model, ids[i].data, ids[i].model);
}

static void open_data(struct run *run)
{
    const struct config *cfg = run->cfg;
    const int T = cfg->data.sequence_length, V = cfg->model.vocab_size;
    const bool skip_bad = cfg->data.on_bad_shard == ON_BAD_SHARD_SKIP;
    const bool masked = cfg->data.document_mask;

    run->train_data = dataset_open(&cfg->data.train, "train", T, V, skip_bad, &run->mesh);
    dataset_check_documents(run->train_data, &cfg->data.train, masked, &run->mesh);
    if (cfg->data.heldout.n > 0) {
        run->heldout_data = dataset_open(&cfg->data.heldout, "heldout", T, V, skip_bad, &run->mesh);
        dataset_weigh_by_size(run->heldout_data);
        dataset_check_heldout(run->train_data, run->heldout_data, &run->mesh);
        dataset_check_documents(run->heldout_data, &cfg->data.heldout, masked, &run->mesh);
    } else if (cfg->data.heldout_share > 0) {
        struct fault fault = {0};
        run->heldout_data =
            dataset_try_cut(run->train_data, "heldout", cfg->data.heldout_share, &fault);
        agree(run->heldout_data, fault.code, "%s", fault.why);
    }
    if (run->mesh.rank == 0) compare_ids(&cfg->model, dataset_ids(run->train_data));
    const int64_t epoch = dataset_samples(run->train_data);
    const int batch = schedule_largest_batch(cfg);
    agree(batch <= epoch, CODE_DATA,
          "train data: %lld sequences of %d tokens, one batch takes %d (train.global_batch)",
          (long long)epoch, T, batch);
    run->train_reader = reader_init(run->train_data, (uint64_t)cfg->run.seed, cfg->data.shuffle,
                                    cfg->train.micro_batch, 2 * run->max_micro);
    if (run->heldout_data)
        run->heldout_reader = reader_init(run->heldout_data, 0, false, cfg->train.micro_batch, 2);
}

/* All ranks measure at the same time, as they will compute. Threads that take turns on a core each
 * see all of it; together they have it once. */
static double measure_peak(const struct run *run, enum dtype dt)
{
    const double turns = (double)run->threads * run->mesh.core_sharers / mesh_cores();
    wait_barrier("start of the measurement");
    const double peak = run->be->measure_peak(run->stream, dt);
    return turns > 1 ? peak / turns : peak;
}

static void measure_machine(struct run *run)
{
    struct profile_bounds *b = &run->bounds;
    run->peak_flops = measure_peak(run, run->cfg->train.compute_dtype);
    comm_all_reduce_host(&run->comm, AXIS_WORLD, &run->peak_flops, 1, REDUCE_SUM);
    snprintf(run->peak_source, sizeof run->peak_source,
             "measured %s products, %d rank%s x %d thread%s",
             run->cfg->train.compute_dtype == DTYPE_BF16 ? "BF16" : "F32", run->mesh.size,
             text_s(run->mesh.size), run->threads, text_s(run->threads));
    if (!run->cfg->debug.profile) return;
    b->flops_f32 = measure_peak(run, DTYPE_F32);
    b->flops_bf16 = measure_peak(run, DTYPE_BF16);
    wait_barrier("start of the measurement");
    b->bandwidth = run->be->measure_bandwidth(run->stream);
}

static void open_metrics(struct run *run)
{
    const struct run_identity id = {
        .version = version_commit(),
        .config_hash = config_hash(run->cfg),
        .train_fingerprint = dataset_fingerprint(run->train_data),
        .heldout_fingerprint = run->heldout_data ? dataset_fingerprint(run->heldout_data) : 0,
        .params_total = run->counts.params_total + run->counts.mtp_params,
        .params_active = run->counts.params_active,
        .flop_per_token = run->counts.flop_exact,
        .peak_flops = run->peak_flops,
        .peak_source = run->peak_source,
        .resumed = run->resumed,
        .goes_on = run->resumed_own,
        .first_step = run->progress.step,
        .last_loss = run->last_loss};
    run->metrics = metrics_open(run->cfg, &run->mesh, &id);
}

static const struct backend *choose_backend(const struct config *cfg, const struct mesh *mesh)
{
    const bool cuda = cfg->run.backend == RUN_BACKEND_CUDA;
    const int device = cuda ? device_choose(mesh) : 0;
    const struct backend *be = backend_find(cuda ? "cuda" : "cpu");
    agree(be, CODE_CONFIG, "run.backend cuda: GPU %d, but this program was built without CUDA",
          device);
    backend_check(be);
    return cfg->debug.profile ? profile_backend(be) : be;
}

/* debug.fault: what a machine, the system or a bug can do to a rank. */
static void arm_fault(const struct run *run)
{
    static const int signal_of[] = {
        [FAULT_STOP] = SIGSTOP, [FAULT_KILL] = SIGKILL, [FAULT_CRASH] = SIGSEGV, [FAULT_HANG] = 0};
    const struct config_debug *d = &run->cfg->debug;
    if (d->fault != FAULT_NONE && d->fault_rank == run->mesh.rank)
        place_fault(d->fault_at, signal_of[d->fault]);
}

void run_init(struct run *run, const struct config *cfg)
{
    memset(run, 0, sizeof *run);
    run->cfg = cfg;
    run->last_loss = NAN;
    run->skip = cfg->data.skip_samples;
    place_at("mesh");
    mesh_init(&run->mesh, cfg);
    arm_fault(run);
    place_at("memory");
    run->be = choose_backend(cfg, &run->mesh);
    run->threads = mesh_threads(&run->mesh, cfg);
    run->stream = run->be->stream_create(run->threads);
    model_count(&run->counts, cfg);
    plan_rank(&run->plan, cfg, &run->mesh);
    check_memory(run);
    run_place(run, &run->plan.worst);
    agree(!cfg->debug.bad_grad_step || param_find(&run->params, cfg->debug.bad_grad_param),
          CODE_CONFIG, "debug.bad_grad_param %s: no such parameter", cfg->debug.bad_grad_param);
    place_at("data");
    open_data(run);
    run_resume(run);
    run_check_epochs(run);
    place_at("measurement");
    measure_machine(run);
    run_begin(run);
    place_at("metrics");
    open_metrics(run); /* run.dir is this run's from here on, also for whoever starts it again */
    place_at("checkpoints");
    save_init(run);
    place_at("samples");
    samples_init(run);
    if (run->resumed) save_is_at(run, run->progress.step);
    run_print_summary(run);
    comm_take_count(&run->comm);
}

void run_free(struct run *run)
{
    metrics_close(run->metrics);
    mem_thaw();
    samples_free(run);
    save_free(run);
    if (run->heldout_data) {
        reader_free(run->heldout_reader);
        dataset_close(run->heldout_data);
    }
    reader_free(run->train_reader);
    dataset_close(run->train_data);
    run_unplace(run);
    run->be->stream_destroy(run->stream);
    mesh_free(&run->mesh);
    owner_free(run->owner);
}
