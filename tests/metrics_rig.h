/* metrics_rig.h - a small run's numbers, for the tests of src/train/metrics.c and console.c. */
#pragma once

#include "train/metrics.h"
#include "train/rundir.h"

#include <math.h>

static const double load[2] = {1.25, 1.0 / 3.0};
static const int64_t labels[2] = {2048, 2044};
static const int64_t counts[2][3] = {{1, 2, 3}, {4, 0, 2}};
static const float biases[2][3] = {{0.5f, -0.25f, 0}, {0, 0.125f, 0}};
static const struct step_report metrics_report = {.step = 3,
                                                  .tokens = 6144,
                                                  .samples = 48,
                                                  .skipped_samples = 16,
                                                  .step_tokens = 2048,
                                                  .n_stages = 2,
                                                  .n_label = labels,
                                                  .loss = 0.1,
                                                  .mtp_loss = 2.0,
                                                  .balance_loss = 1e-4,
                                                  .grad_norm = NAN,
                                                  .skipped = 1,
                                                  .lr = 2e-3,
                                                  .step_s = 0.5,
                                                  .compute_s = 0.25,
                                                  .comm_s = 0.125,
                                                  .bytes_intra = 1000000007,
                                                  .bytes_inter = 1ll << 53,
                                                  .n_moe_layers = 2,
                                                  .expert_load = load,
                                                  .expert_count = counts[0],
                                                  .bias = biases[0],
                                                  .bias_min = -1e-3,
                                                  .bias_max = 1e-3,
                                                  .n_sources = 2,
                                                  .epoch = {0.25, 1.5},
                                                  .memory_bytes = 123456789,
                                                  .token_hash = 0x123456789abcdef0u,
                                                  .time_s = {0.01, 0.3, 0.1, 0.05, 0}};
static const struct run_identity metrics_identity = {.version = "1.2.3",
                                                     .config_hash = 0xabc,
                                                     .train_fingerprint = 0xdef,
                                                     .params_total = 33014016,
                                                     .params_active = 28098816,
                                                     .flop_per_token = 0.5,
                                                     .peak_flops = 1e9,
                                                     .peak_source = "measured F32 products"};

static inline struct config metrics_config(const char *dir)
{
    struct config cfg = {.run = {.dir = dir, .resume = "none"},
                         .train = {.steps = 5, .log_every = 1}};
    cfg.model.n_routed_experts = 3;
    return cfg;
}

static inline struct mesh metrics_mesh(int rank)
{
    return (struct mesh){
        .rank = rank, .size = 8, .dp = 4, .tp = 2, .ep = 8, .edp = 1, .n_nodes = 2};
}

/* run.dir as a run that starts anew makes it. */
static inline void metrics_begin(const struct config *cfg, int rank)
{
    struct fault fault = {0};
    const int bad = rank == 0 ? rundir_try_claim(cfg, &fault) : 0;
    CHECK_CODE(fault.code, !bad, "%s", fault.why);
}

/* A whole run: one step, one evaluation, the parameter hash. */
static inline void metrics_run(const struct config *cfg, int rank)
{
    const struct mesh m = metrics_mesh(rank);
    metrics_begin(cfg, rank);
    struct metrics *mx = metrics_open(cfg, &m, &metrics_identity);
    metrics_step(mx, &metrics_report);
    metrics_eval(mx, &(struct eval_report){.step = 3, .all = {NULL, 65536, 2.5}, .seconds = 1.5});
    metrics_param_hash(mx, 0x5eed, 0.75);
    metrics_close(mx);
}
