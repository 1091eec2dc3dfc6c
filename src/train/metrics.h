/*
 * metrics.h - what the run reports: metrics.jsonl (one JSON object a line, the source of truth),
 * torchtitan-like console lines, the final summary. Rank 0 writes; the numbers it is handed are
 * already those of the whole job.
 */
#pragma once

#include "config/config.h"
#include "topo/mesh.h"

#include <math.h>

enum phase_time { TIME_DATA, TIME_FORWARD_BACKWARD, TIME_COMM, TIME_OPTIMIZER, TIME_EVAL, N_TIMES };

/* Token losses, of the main model and of MTP modules, that are not finite. */
struct bad_losses {
    int64_t n; /* of all ranks */
    int rank;  /* the first that has one; when n > 0 */
};

struct step_report {
    int64_t step, tokens, step_tokens; /* tokens: read so far; step_tokens: in this step */
    int64_t samples, skipped_samples;  /* number of the next one; of those before it */
    int n_stages;
    const int64_t *n_label; /* [n_stages] of the main model, of each MTP depth; whole batch */
    double loss;            /* token-weighted mean over the global batch, nats */
    double mtp_loss;        /* mean over depths of each depth's own mean; 0 without MTP */
    double balance_loss;    /* alpha sum f P, mean over sequences and MoE layers */
    struct bad_losses bad;
    double grad_norm, lr;             /* grad_norm NaN: not known, a loss was not finite */
    int64_t skipped;                  /* steps so far that changed no weight */
    double step_s, compute_s, comm_s; /* of rank 0; comm_s includes waiting */
    int64_t bytes_intra, bytes_inter; /* sent by all ranks in this step */
    int n_moe_layers;                 /* MTP modules included */
    const double *expert_load;        /* [n_moe_layers] max / mean tokens an expert */
    const int64_t *expert_count;      /* [n_moe_layers, E] tokens */
    const float *bias;                /* [n_moe_layers, E] selection biases after the step */
    int64_t dropped;                  /* always 0: dropless */
    double bias_min, bias_max;
    uint64_t token_hash; /* debug.token_hash */
    int n_sources;
    double epoch[MAX_SOURCES]; /* [n_sources] passes over each source since step 1 */
    int64_t memory_bytes;      /* resident so far at most, of the rank that has most */
    double time_s[N_TIMES];    /* of rank 0, this step; TIME_EVAL comes from metrics_eval instead */
};

struct eval_loss {
    const char *path; /* of a source's first shard; NULL: of all sources */
    int64_t tokens;   /* with a label */
    double loss;      /* mean over them, nats */
};

struct eval_report {
    int64_t step;
    double token_bytes; /* of held-out text a token, mean; 0: not known */
    struct eval_loss all, source[MAX_SOURCES];
    int n_sources;
    struct bad_losses bad;
    double seconds;
};

/* Of text that was not trained on; NaN: not known. */
static inline double eval_bits_per_byte(const struct eval_report *r)
{
    return r->token_bytes > 0 ? r->all.loss / (M_LN2 * r->token_bytes) : NAN;
}

struct run_identity {
    const char *version;
    uint64_t config_hash, train_fingerprint, heldout_fingerprint; /* 0: no held-out data */
    int64_t params_total, params_active;
    double flop_per_token;   /* exact causal, forward + backward, for the share of peak */
    double peak_flops;       /* all ranks together, measured; 0: unknown */
    bool resumed;            /* from a checkpoint */
    bool goes_on;            /* one of run.dir: lines are added to those that are there */
    int64_t first_step;      /* steps that were done before */
    double last_loss;        /* of the last of these; NaN: none */
    const char *peak_source; /* e.g. "measured F32 products, 2 ranks x 1 threads" */
};

struct metrics;

struct checkpoint_report {
    int64_t step, bytes;
    double stall_s, write_s; /* of rank 0: the steps waited; from then until it was safe */
};

struct rollback_report {
    int n;                    /* which of the run's, from 1 */
    int64_t step, spike_step; /* where the run is again, and where it was */
    int64_t tokens;           /* of the steps between, which are done again */
    const char *reason;
    double value, median;
    struct range skip;
};

/* Opens run.dir/metrics.jsonl and writes the identity line. Only rank 0 does anything; elsewhere
 * it returns an object that ignores all calls. run.dir is there. Fatal: CODE_IO when a write fails;
 * later on, with checkpoint.on_error warn, a line that cannot be written whole is left out instead,
 * which is told once and counted. No half of a line stays in either case. */
struct metrics *metrics_open(const struct config *cfg, const struct mesh *mesh,
                             const struct run_identity *id);

/* JSON line, and a console line with the time left every train.log_every steps and at the first and
 * last step. The first step is marked as an outlier: it does not enter the median. */
void metrics_step(struct metrics *mx, const struct step_report *r);
void metrics_eval(struct metrics *mx, const struct eval_report *r);

/* Text that the model made after that step, UTF-8. */
void metrics_sample(struct metrics *mx, int64_t step, const char *text);

/* A checkpoint is safe. */
void metrics_checkpoint(struct metrics *mx, const struct checkpoint_report *r);

/* Cuts off what the file says of the steps that are done again, then a line. */
void metrics_rollback(struct metrics *mx, const struct rollback_report *r);

/* debug.param_hash */
void metrics_param_hash(struct metrics *mx, uint64_t hash, double l2);

/* Final summary: tokens, time, median tokens/s, share of peak, time by phase, last losses. */
void metrics_close(struct metrics *mx);
