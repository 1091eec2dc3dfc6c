/*
 * run.h - a training run: everything that is set up once, and the loop's pieces, one file each:
 * plan.c (what it will take), setup.c (arenas, start-up), loop.c, step.c, nonfinite.c, eval.c,
 * dump.c, summary.c.
 */
#pragma once

#include "base/cgroup.h"
#include "ckpt/manifest.h"
#include "comm/comm.h"
#include "data/data.h"
#include "kernels/profile.h"
#include "model/count.h"
#include "model/model.h"
#include "optim/optim.h"
#include "train/metrics.h"
#include "train/plan.h"

/* What the ranks tell one another at the end of each step and before each batch of an evaluation,
 * summed over them. */
struct agreed {
    double save_due;               /* rank 0's clock: checkpoint.every_minutes have passed */
    double save_busy, save_failed; /* ranks whose part of a save is on its way, has failed */
    double stop;                   /* ranks that wish to end the run here, see stop.h */
    double time_up;                /* those of them whose run.exit_after is over */
    double no_data;                /* ranks with a data_fault */
    double spoiled;                /* ranks whose update in this step was not finite */
};
enum { N_AGREED = sizeof(struct agreed) / sizeof(double) };

/* Why a step asks for a rollback. rank: the one that knows best, and says so. */
struct spike {
    bool seen;
    int rank;
    const char *reason;   /* as in metrics.jsonl */
    double value, median; /* NaN: none */
    char what[256];       /* in words */
};

struct owner;
struct saver;
struct sampler;
struct tokenizer;

struct run {
    const struct config *cfg;
    struct mesh mesh;
    const struct backend *be; /* NULL: a plan pass */
    struct stream *stream;
    int threads;
    bool worst_routing; /* plan pass, see struct model_parts */
    struct comm comm;
    struct plan plan;
    struct memory_fit memory_fit; /* of the ranks of this machine */
    struct arena weights, grads, optimizer, staging, snapshot;
    struct param_table params;
    struct optim optim;
    struct model model;
    struct model_counts counts;
    double peak_flops;            /* of all ranks; 0: unknown */
    char peak_source[80];         /* what it is the peak of: how, dtype, ranks and threads */
    struct profile_bounds bounds; /* of this rank; debug.profile */

    struct dataset *train_data, *heldout_data; /* heldout_data NULL: none */
    struct reader *train_reader, *heldout_reader;
    struct metrics *metrics;
    struct progress progress;
    struct ranges skip;  /* samples that are passed over */
    bool resumed;        /* from a checkpoint */
    bool resumed_own;    /* one of run.dir */
    bool resumes_again;  /* so will the same command, from the newest; known to rank 0 */
    int64_t newest;      /* checkpoint in run.dir when rank 0 looked; -1: none */
    struct owner *owner; /* of run.dir, rank 0 */
    bool has_eval;       /* its metrics have the evaluation after its step */
    int skipped_in_row;  /* steps, up to now */
    bool spoiled;        /* this rank's update in this step has made a number that is not finite */
    double last_loss;    /* of the last step */
    struct ckpt_best evaluated;      /* the last held-out loss */
    struct ckpt_best best;           /* checkpoint.keep_best: the lowest whose weights are saved */
    bool new_best;                   /* that is `evaluated`, and is to be saved now */
    struct ckpt_rollbacks rollbacks; /* their samples are in skip */
    struct ckpt_recent recent;       /* train.on_spike */
    struct spike spike;              /* of the last step */
    struct agreed agreed;
    struct saver *saver;         /* NULL: checkpoints are off */
    void *copy_of[3][N_BUCKETS]; /* in snapshot: masters and moments of a save */
    float *copy_of_bias;         /* [n_moe, E] */
    double data_s;               /* waiting for data in this step */
    struct fault data_fault;     /* of this rank's reader; all zero: none */

    struct sampler *sampler;     /* NULL: train.sample_every is 0 */
    struct tokenizer *tokenizer; /* of the samples; rank 0 */
    int n_sample_prompt;
    int32_t *sample_prompt;

    int max_micro;                /* micro-batches a rank has in one step, at most */
    int32_t *token, *doc_start;   /* [max_micro, B, T + 1] of this step */
    int64_t *sample;              /* [max_micro, B] */
    int64_t *wanted;              /* [B] scratch for requests */
    bool *valid;                  /* [B] scratch for evaluation */
    int64_t *expert_total;        /* [n_moe, E] */
    double *expert_load;          /* [n_moe] */
    float *h_bias;                /* [n_moe, E] */
    double *h_loss;               /* [2 + n_mtp] */
    int64_t n_label[1 + MAX_MTP]; /* of this step, the whole batch */
};

/* Everything before the first step. Collective over MPI_COMM_WORLD. cfg outlives the run. */
void run_init(struct run *run, const struct config *cfg);
void run_free(struct run *run);

/* The part of run_init that takes memory, given cfg, mesh, be and stream: arenas of these sizes (in
 * a plan pass they count, and memory may be NULL) and what lies in them, and the step's buffers. No
 * weights yet. Not collective. run must not move until run_unplace. */
void run_place(struct run *run, const struct memory *memory);
void run_unplace(struct run *run);

/* The part of it that a model needs which is not trained: no gradients, optimizer, step's buffers.
 * cache_tokens: see struct model_parts. run_unplace ends it, too. */
void run_place_model(struct run *run, const struct memory *memory, int cache_tokens);

/* The most that each role has taken so far. */
struct memory run_memory(const struct run *run);

/* What the run is going to do, on rank 0's standard output. */
void run_print_summary(const struct run *run);

/* Planned and used bytes of each role, the most of any rank. Collective; rank 0 prints. */
void run_print_memory(struct run *run);

/* The steps of the run, evaluations, reports, checkpoints. CODE_DONE; or, when it has to end before
 * all is done, what stop_save says. */
enum exit_code run_loop(struct run *run);

/* One optimizer step: data, forward and backward of the micro-batches, reduction, update, report.
 */
void run_step(struct run *run);

/* The step from its first n_micro micro-batches in run->token to new weights, and what it found. In
 * a plan pass everything is counted as it would happen. Collective. */
void run_compute(struct run *run, int n_micro, struct step_report *report);

/* Ask the reader for the micro-batches of the step that starts at progress `at`. */
void run_request_step(struct run *run, const struct progress *at);

/* Where the run is after the step that begins at `at`; and at its end. */
struct progress run_after_step(const struct run *run, const struct progress *at);
int64_t run_end_samples(const struct run *run);

/* With data.max_epochs no source may be read more often. Collective. */
void run_check_epochs(const struct run *run);

/* End the job with data_fault of the lowest rank that has one. Collective over world. */
void run_agree_data(const struct run *run);

/* Every rank's part of run->agreed, summed. Collective. */
void run_agree(struct run *run);

/* Loss over the held-out set (train.eval_sequences of it), reported through metrics. False: a rank
 * wished to stop before its end, and nothing is reported. */
bool run_eval(struct run *run);

/* debug.dump_step: per-token losses and expert ids of the micro-batch that has gone forward, into
 * run.dir/dump-step-N/rank-R.jsonl; one line per sequence part of this rank. sample [B]: its place
 * in run->sample. */
void run_dump(struct run *run, const int64_t *sample);
