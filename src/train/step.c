/*
 * step.c - one optimizer step. Every mean is a sum over the whole step divided by a count over the
 * whole step, both known to all ranks: how the batch is cut into ranks and micro-batches does not
 * show in any number.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "train/nonfinite.h"
#include "train/spike.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

struct progress run_after_step(const struct run *run, const struct progress *at)
{
    const int batch = schedule_global_batch(run->cfg, at);
    struct progress next = *at;
    next.step++;
    next.tokens += (int64_t)batch * run->cfg->data.sequence_length;
    next.samples = ranges_after(&run->skip, at->samples, batch);
    next.passed += next.samples - at->samples - batch;
    return next;
}

/* Micro-batch i of data-parallel rank d takes sequences (i * dp + d) * B ... of the step. */
void run_request_step(struct run *run, const struct progress *at)
{
    const int B = run->cfg->train.micro_batch, d = run->mesh.axis[AXIS_DP].rank;
    const int batch = schedule_global_batch(run->cfg, at);
    const int n_micro = schedule_micro_batches(run->cfg, batch, run->mesh.dp);
    for (int i = 0; i < n_micro; i++) {
        for (int b = 0; b < B; b++)
            run->wanted[b] =
                ranges_after(&run->skip, at->samples, ((int64_t)i * run->mesh.dp + d) * B + b + 1) -
                1;
        reader_request(run->train_reader, run->wanted, B);
    }
}

/* Collect the step's micro-batches, so that its labels can be counted before its first loss. */
static void wait_for_data(struct run *run, int n_micro)
{
    const double start = clock_s();
    place_at("data");
    const int64_t B = run->cfg->train.micro_batch, row = run->cfg->data.sequence_length + 1;
    for (int i = 0; i < n_micro; i++) {
        const struct batch *batch = reader_try_wait(run->train_reader, &run->data_fault);
        if (!batch) break; /* all ranks learn it with the label counts */
        const size_t bytes = (size_t)(B * row) * sizeof(int32_t);
        memcpy(run->token + i * B * row, batch->token, bytes);
        memcpy(run->doc_start + i * B * row, batch->doc_start, bytes);
        memcpy(run->sample + i * B, batch->sample, (size_t)B * sizeof(int64_t));
    }
    run->data_s = clock_s() - start;
}

/* One token's weight in the loss of each stage, from label counts over the whole step. */
static void set_loss_scales(struct run *run, int n_micro, int64_t *n_label)
{
    struct model *m = &run->model;
    const int64_t micro = (int64_t)m->flow.B * (m->flow.T + 1);
    const bool read = run->data_fault.code == CODE_DONE;
    double count[2 + MAX_MTP] = {0};
    for (int i = 0; read && i < n_micro; i++)
        model_count_labels(m, run->token + i * micro, run->doc_start + i * micro, NULL, n_label);
    for (int k = 0; k <= m->n_mtp; k++) count[k] = (double)n_label[k];
    count[m->n_mtp + 1] = !read;
    comm_all_reduce_host(&run->comm, AXIS_WORLD, count, m->n_mtp + 2, REDUCE_SUM);
    if (count[m->n_mtp + 1] > 0) run_agree_data(run);
    const double mtp_weight = schedule_mtp_loss_weight(run->cfg, &run->progress);
    for (int k = 0; k <= m->n_mtp; k++) {
        const double weight = k == 0 ? 1.0 : mtp_weight / m->n_mtp;
        count[k] /= run->mesh.tp; /* every tp rank counted the whole micro-batch */
        n_label[k] = (int64_t)count[k];
        m->flow.loss_scale[k] = count[k] > 0 ? (float)(weight / count[k]) : 0.0f;
    }
    const int batch = schedule_global_batch(run->cfg, &run->progress);
    m->flow.balance_scale = (float)(run->cfg->train.balance_loss_alpha / batch);
}

static void forward_backward(struct run *run, int n_micro)
{
    struct model *m = &run->model;
    const int64_t B = m->flow.B, row = m->flow.T + 1;
    const bool dump = run->be && run->cfg->debug.dump_step == run->progress.step + 1;
    for (int i = 0; i < n_micro; i++) {
        model_load(m, run->token + i * B * row, run->doc_start + i * B * row, NULL);
        model_forward(m, true);
        if (dump) run_dump(run, run->sample + i * B);
        model_backward(m);
    }
    RUN(run, stream_sync);
}

/* loss_sum of all ranks to means; the balance term was added once on every tp rank. Resets. False:
 * one is not finite, and the step is skipped. */
static bool take_losses(struct run *run, const int64_t *n_label, struct step_report *r)
{
    struct model *m = &run->model;
    const int n = m->n_mtp + 2;
    RUN(run, copy, run->h_loss, m->loss_sum, (size_t)n * sizeof(double));
    RUN(run, zero, m->loss_sum, (size_t)n * sizeof(double));
    RUN(run, stream_sync);
    const int mine = nonfinite_loss(run);
    r->bad = nonfinite_take_count(run);
    comm_all_reduce_host(&run->comm, AXIS_WORLD, run->h_loss, n, REDUCE_SUM);
    r->loss = n_label[0] > 0 ? run->h_loss[0] / (double)n_label[0] : 0;
    for (int k = 1; k <= m->n_mtp; k++)
        if (n_label[k] > 0) r->mtp_loss += run->h_loss[k] / (double)n_label[k] / m->n_mtp;
    if (m->n_moe > 0) r->balance_loss = run->h_loss[m->n_mtp + 1] / run->mesh.tp / m->n_moe;
    if (nonfinite_loss(run) < 0) return true;
    nonfinite_skip_loss(run, mine);
    return false;
}

/* The biases move by the step's counts, unless the step was skipped. */
static void take_expert_load(struct run *run, struct step_report *r, bool skipped)
{
    struct model *m = &run->model;
    const int64_t n = (int64_t)m->n_moe * m->E;
    const double speed = schedule_router_bias_speed(run->cfg, &run->progress);
    model_update_router_bias(m, run->expert_total, skipped ? 0 : speed);
    for (int l = 0; l < m->n_moe; l++) {
        int64_t most = 0, sum = 0;
        for (int e = 0; e < m->E; e++) {
            const int64_t count = run->expert_total[(int64_t)l * m->E + e];
            most = count > most ? count : most;
            sum += count;
        }
        run->expert_load[l] = sum > 0 ? (double)most * m->E / (double)sum : 0;
    }
    RUN(run, copy, run->h_bias, m->bias, (size_t)n * sizeof(float));
    RUN(run, stream_sync);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || run->h_bias[i] < r->bias_min) r->bias_min = run->h_bias[i];
        if (i == 0 || run->h_bias[i] > r->bias_max) r->bias_max = run->h_bias[i];
    }
    r->n_moe_layers = m->n_moe;
    r->expert_load = run->expert_load;
    r->expert_count = run->expert_total;
    r->bias = run->h_bias;
}

/* The same for the same sequences in a step, in whatever order and on whatever rank: a sum modulo
 * 2^64. */
static uint64_t hash_tokens(struct run *run, int n_micro)
{
    const int64_t B = run->model.flow.B, row = run->model.flow.T + 1;
    uint64_t sum = 0;
    for (int64_t i = 0; run->mesh.axis[AXIS_TP].rank == 0 && i < n_micro * B; i++)
        sum += XXH64(run->token + i * row, (size_t)row * sizeof(int32_t), (uint64_t)run->sample[i]);
    return comm_sum_hash(&run->comm, sum);
}

/* Bytes of all ranks, seconds of this one. */
static void take_times(struct run *run, struct step_report *r, double start)
{
    const struct comm_count count = comm_take_count(&run->comm);
    double bytes[2] = {(double)count.bytes_intra, (double)count.bytes_inter};
    double memory = (double)mem_peak();
    comm_all_reduce_host(&run->comm, AXIS_WORLD, bytes, 2, REDUCE_SUM);
    comm_all_reduce_host(&run->comm, AXIS_WORLD, &memory, 1, REDUCE_MAX);
    run_agree(run);
    comm_take_count(&run->comm); /* the report's own sums are no part of any step */
    r->bytes_intra = (int64_t)bytes[0];
    r->bytes_inter = (int64_t)bytes[1];
    r->memory_bytes = (int64_t)memory;
    r->step_s = clock_s() - start;
    r->comm_s = count.seconds;
    r->compute_s = r->step_s - count.seconds - run->data_s;
    r->time_s[TIME_DATA] = run->data_s;
    r->time_s[TIME_COMM] = count.seconds;
    r->time_s[TIME_FORWARD_BACKWARD] = r->compute_s - r->time_s[TIME_OPTIMIZER];
}

/* Reduce, look at the numbers before they reach a weight, update. False: the step is skipped. */
static bool update_weights(struct run *run, struct step_report *r)
{
    const struct progress *at = &run->progress;
    place_at("gradient reduction");
    optim_reduce_gradients(&run->optim);
    place_at("gradient norm");
    const double start = clock_s(), comm_before = comm_counts_sum(&run->comm.counts).seconds;
    r->grad_norm = optim_grad_norm(&run->optim);
    const bool fits = optim_norm_fits(&run->optim, r->grad_norm);
    place_at("optimizer");
    if (fits)
        run->spoiled = !optim_step(&run->optim, at->step + 1 - at->skipped, r->lr, r->grad_norm);
    else
        nonfinite_skip_gradient(run, r->grad_norm);
    const double comm_s = comm_counts_sum(&run->comm.counts).seconds - comm_before;
    r->time_s[TIME_OPTIMIZER] = clock_s() - start - comm_s;
    return fits;
}

void run_compute(struct run *run, int n_micro, struct step_report *r)
{
    memset(run->n_label, 0, sizeof run->n_label);
    r->n_label = run->n_label;
    r->n_stages = run->model.n_mtp + 1;
    r->grad_norm = NAN;
    run->spoiled = false;
    r->lr = schedule_lr(run->cfg, &run->progress);
    set_loss_scales(run, n_micro, run->n_label);
    forward_backward(run, n_micro);
    nonfinite_inject(run);
    place_at("losses");
    const bool good = take_losses(run, run->n_label, r) && update_weights(run, r);
    if (good) run->skipped_in_row = 0;
    place_at("router bias");
    take_expert_load(run, r, !good);
    place_at("metrics");
    if (run->cfg->debug.token_hash) r->token_hash = hash_tokens(run, n_micro);
}

/* What one step keeps, the next one lacks: memory that runs out after days. */
static void check_given_back(const struct run *run)
{
    const struct arena *arenas[] = {&run->model.stack, &run->model.scratch, &run->staging};
    for (size_t i = 0; i < sizeof arenas / sizeof *arenas; i++)
        CHECK(arenas[i]->used == 0, "step %lld: %zu bytes of %s memory are still in use",
              (long long)run->progress.step, arenas[i]->used, arenas[i]->name);
}

static void count_epochs(const struct run *run, struct step_report *r)
{
    r->n_sources = dataset_sources(run->train_data);
    for (int s = 0; s < r->n_sources; s++)
        r->epoch[s] = (double)dataset_taken(run->train_data, s, run->progress.samples) /
                      (double)dataset_source_info(run->train_data, s).n_samples;
}

void run_step(struct run *run)
{
    const double start = clock_s();
    const bool profiled =
        run->cfg->debug.profile && run->progress.step > 0; /* the first warms up */
    const int batch = schedule_global_batch(run->cfg, &run->progress);
    const int n_micro = schedule_micro_batches(run->cfg, batch, run->mesh.dp);
    struct step_report r = {.step_tokens = (int64_t)batch * run->cfg->data.sequence_length};

    place_stage("step", run->progress.step + 1);
    if (profiled) profile_start();
    wait_for_data(run, n_micro);
    struct progress next = run_after_step(run, &run->progress);
    if (next.step < run->cfg->train.steps) run_request_step(run, &next);
    run_compute(run, n_micro, &r);
    r.step = next.step;
    r.tokens = next.tokens;
    r.samples = next.samples;
    r.skipped_samples = next.passed;
    r.skipped = next.skipped = run->progress.skipped;
    run->progress = next;
    run->last_loss = r.loss;
    check_given_back(run);
    count_epochs(run, &r);
    take_times(run, &r, start);
    if (run->agreed.spoiled > 0) nonfinite_end_update(run, &r);
    if (spike_wanted(run)) spike_look(run, &r);
    if (profiled) profile_stop(&(struct profile_step){r.step_s, run->data_s, r.comm_s});
    metrics_step(run->metrics, &r);
}
