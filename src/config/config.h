/*
 * config.h - the run's configuration: one YAML file (plus the files it names as base) and
 * command-line overrides become one struct config. One table (keys.c) holds every key: it parses,
 * validates, prints, documents. Everything after this stage takes const struct config *.
 *
 * Sections follow the flow of the run. Model keys have the names of Hugging Face's config.json.
 */
#pragma once

#include "base/dtype.h"
#include "base/err.h"
#include "base/range.h"

#include <stdint.h>
#include <stdio.h>

/* A quantity that changes along the run: in stage i, from until[i-1] (0 for the first) to until[i],
 * it moves from value[i-1] (the section's plain key for the first) to value[i] in this shape; after
 * the last stage it keeps the last value. until counts train.schedule_unit (tokens or steps). */
enum stage_shape { STAGE_HOLD, STAGE_LINEAR, STAGE_COSINE }; /* hold: value[i] all along */
enum { MAX_STAGES = 8, MAX_PATHS = 64, MAX_SOURCES = 16 };
struct stages {
    int n;
    struct stage {
        double until, value;
        enum stage_shape shape;
    } at[MAX_STAGES];
};

/* Files of token ids that are read as one stream, and how often they come among other sources. */
enum data_format {
    DATA_FORMAT_AUTO, /* told by name and contents */
    DATA_FORMAT_NATIVE,
    DATA_FORMAT_MEGATRON,
    DATA_FORMAT_LLMC,
    DATA_FORMAT_DATATROVE,
    DATA_FORMAT_NPY,
    DATA_FORMAT_U16, /* ids and nothing else */
    DATA_FORMAT_U32
};
struct data_source {
    int n_paths;
    const char *path[MAX_PATHS]; /* files or directories */
    double weight;               /* of its samples, relative to the other sources */
    enum data_format format;
    int eod_id, bos_id; /* ids that end and begin documents, where no index tells; -1: none */
};
struct data_sources {
    int n;
    struct data_source at[MAX_SOURCES];
};

enum run_backend { RUN_BACKEND_AUTO, RUN_BACKEND_CPU, RUN_BACKEND_CUDA };
struct config_run {
    const char *dir; /* everything the run writes lies here */
    int64_t seed;
    enum run_backend backend;
    bool overwrite;         /* a non-empty dir is an error unless set */
    const char *resume;     /* "auto", "none", or a checkpoint's path */
    const char *init_from;  /* a checkpoint's path; "": none */
    bool init_from_partial; /* not all tensors of the model need be there */
    double deadline_s;      /* longest wait for another rank */
    double exit_after;      /* minutes; 0: never */
    bool verbose;
    bool tensorboard;   /* event files beside metrics.jsonl */
    bool expert_counts; /* in every step's line of it */
    int threads;        /* per rank; 0: OMP_NUM_THREADS, or this rank's share of its cores */
};

struct config_topology {
    int tp, ep;
    int ranks_per_node; /* 0: ask MPI which ranks share memory */
};

enum on_bad_shard { ON_BAD_SHARD_STOP, ON_BAD_SHARD_SKIP };
struct config_data {
    struct data_sources train, heldout;
    double heldout_share;           /* of each train source, its end: only evaluated */
    enum on_bad_shard on_bad_shard; /* a shard that is broken when the run starts */
    int sequence_length;
    bool document_mask; /* attention and labels stay inside a document */
    bool shuffle;
    int max_epochs; /* 0: repeat for ever; otherwise running out is an error before the start */
    struct ranges skip_samples; /* numbers in the run's order; never trained on */
};

enum scoring { SCORING_SIGMOID, SCORING_SOFTMAX };
enum topk_method { TOPK_NOAUX_TC, TOPK_GREEDY, TOPK_GROUP_LIMITED_GREEDY };
enum rope_type { ROPE_DEFAULT, ROPE_YARN };
enum mtp_hidden { MTP_HIDDEN_NORMED, MTP_HIDDEN_RAW };
enum { MAX_MTP = 8 };
struct config_model {
    int vocab_size, hidden_size, num_hidden_layers, first_k_dense_replace;
    int intermediate_size, moe_intermediate_size;
    int num_attention_heads;
    int q_lora_rank; /* 0 (YAML null): queries come straight from the hidden state */
    int kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
    int n_routed_experts, n_shared_experts, num_experts_per_tok, n_group, topk_group;
    enum scoring scoring_func;
    enum topk_method topk_method; /* noaux_tc has the selection bias and group score top-2 sum;
                                     greedy no groups; group_limited_greedy group score max */
    bool norm_topk_prob;
    double routed_scaling_factor;
    double rms_norm_eps, latent_norm_eps; /* the latter in the two norms of latents */
    double rope_theta;
    enum rope_type rope_type; /* model.rope_scaling.type: default | yarn */
    double rope_factor, rope_beta_fast, rope_beta_slow, rope_mscale, rope_mscale_all_dim;
    int rope_original_max_position_embeddings;
    int max_position_embeddings;
    int bos_token_id, eos_token_id, pad_token_id; /* -1: none */
    int num_nextn_predict_layers;                 /* MTP depth, 0 .. MAX_MTP */
    enum mtp_hidden mtp_hidden; /* what feeds the next depth: after or before the final norm */
    double initializer_range;
};

enum on_spike { ON_SPIKE_NONE, ON_SPIKE_ROLLBACK };
enum { MAX_SPIKE_WINDOW = 1024, MAX_ROLLBACKS = 256 };
enum schedule_unit { UNIT_TOKENS, UNIT_STEPS };
struct config_train {
    int64_t steps;
    int global_batch, micro_batch; /* sequences a step; sequences a rank computes at once */
    struct stages global_batch_stages;
    int global_batch_multiple; /* a ramped batch is rounded down to such a multiple; 0: the start
                                  value of the ramp */
    enum schedule_unit schedule_unit;
    enum dtype compute_dtype; /* F32 or BF16; masters and gradients are F32 always */
    int eval_every;           /* steps; 0: only after the last step */
    int eval_sequences;       /* 0: the whole held-out set */
    int sample_every;         /* steps; 0: never */
    const char *sample_prompt, *sample_tokenizer; /* the latter a tokenizer.json; "": bytes */
    int sample_tokens;
    double sample_temperature, sample_top_p;
    int log_every;
    int loss_chunk_tokens; /* tokens whose logits exist at once */
    double router_bias_speed;
    struct stages router_bias_speed_stages;
    bool router_bias_centred;
    double balance_loss_alpha;
    double mtp_loss_weight;
    struct stages mtp_loss_weight_stages;
    int max_nonfinite_steps; /* in a row that are skipped; one more ends the run */
    enum on_spike on_spike;
    double spike_loss, spike_grad_norm; /* times the median; 0: not looked at */
    int spike_window;                   /* steps of which that is the median */
    int skip_before, skip_after;        /* batches passed over beside that of the spike */
    int max_rollbacks;                  /* in the whole run */
};

enum lr_schedule { LR_CONSTANT, LR_COSINE, LR_LINEAR, LR_STAGES };
struct config_optimizer {
    double lr, min_lr;
    enum lr_schedule schedule; /* after warm-up: constant; cosine or linear to min_lr at the last
                                  step; stages: lr_stages */
    int64_t warmup_steps;
    struct stages lr_stages;
    double beta1, beta2, eps, weight_decay;
    bool decay_all; /* decay norms as well as matrices */
    double clip;    /* global gradient norm; 0: off */
    enum dtype moments_dtype;
};

enum on_error { ON_ERROR_STOP, ON_ERROR_WARN };
struct config_checkpoint {
    int64_t every;        /* steps; 0: none */
    double every_minutes; /* 0: none */
    bool on_exit, on_signal;
    int keep_last;      /* 0: all */
    int64_t keep_every; /* steps; 0: none */
    bool keep_best;     /* of the lowest held-out loss, saved when it is found */
    enum on_error on_error;
    bool verify;        /* read back after writing */
    int64_t file_bytes; /* of each file, at most, unless one tensor is larger */
};

enum bad_value { BAD_NAN, BAD_INF, BAD_HUGE }; /* huge: 1e38, whose square is no F32 */
enum debug_fault { FAULT_NONE, FAULT_STOP, FAULT_KILL, FAULT_CRASH, FAULT_HANG };
struct config_debug {
    bool token_hash;       /* log a hash of each step's tokens and sample ids */
    int64_t dump_step;     /* write per-token loss and expert ids of this step; 0: never */
    bool param_hash;       /* print hash and L2 norm of all parameters at the end */
    bool balanced_routing; /* token n goes to experts n*K .. n*K+K-1 (mod E), weights as scored */
    bool poison_memory;    /* fill fresh and released memory with NaN */
    bool profile;          /* time every operation, print tables at the end; docs/performance.md */
    /* put bad_grad_value into one element of bad_grad_param's gradient at this step; 0: never */
    int64_t bad_grad_step;
    const char *bad_grad_param;
    int bad_grad_rank;
    enum bad_value bad_grad_value;
    bool check_exchange;    /* compare the counts of every expert exchange before it */
    enum debug_fault fault; /* what fault_rank does to itself when it comes to fault_at */
    int fault_rank;
    const char *fault_at; /* as messages name a place: "step 5, dispatch forward of layer 3" */
};

struct config {
    struct config_run run;
    struct config_topology topology;
    struct config_data data;
    struct config_model model;
    struct config_train train;
    struct config_optimizer optimizer;
    struct config_checkpoint checkpoint;
    struct config_debug debug;
    struct config_source *source; /* where each value came from and the strings; owned */
};

/*
 * Read file, its bases and n overrides of the form section.key=value. Returns 0, or -1 with every
 * fault found in errs (each with file:line:column, found, expected, nearest key). Not collective:
 * rank 0 reads, mesh_broadcast_text hands config_to_text on. Free with config_free.
 */
int config_try_load(struct config *cfg, const char *file, int n, char *const overrides[],
                    struct err_list *errs);
void config_free(struct config *cfg);

/* The same from a text that names no bases; `name` stands for the file in messages. */
int config_try_read(struct config *cfg, const char *name, const char *text, struct err_list *errs);

/* What depends on the number of ranks: tp, ep, heads, experts, batch arithmetic. The same list. */
int config_try_check_ranks(const struct config *cfg, int n_ranks, struct err_list *errs);

/* Every key with its value and origin (default, file:line, command line), in YAML that loads back
 * to the same configuration; origins are comments. */
void config_print(const struct config *cfg, FILE *out);

/* A hash of all resolved values (not of their origins). */
uint64_t config_hash(const struct config *cfg);

/* What differs between the settings of a checkpoint, the text of config_to_text, and cfg: each as a
 * line "key: A in the checkpoint, B now" in refused, when the checkpoint's tensors cannot be those
 * of cfg's model or the data would come in another order, or else in taken. Sections run (but for
 * the seed) and debug, and data.train and data.heldout, do not count. */
void config_compare(const char *before, const struct config *cfg, struct err_list *refused,
                    struct err_list *taken);

/* The same of the section model alone, of keys that the text has, whatever they mean. */
void config_compare_model(const char *before, const struct config *cfg, struct err_list *differ);

/* The reference page configs/README.md, from the key table. */
void config_print_reference(FILE *out);

/* Resolved YAML of rank 0 as text: config_to_text allocates (free with free()), config_from_text
 * rebuilds the same struct on another rank. */
char *config_to_text(const struct config *cfg);
void config_from_text(struct config *cfg, const char *text);

static inline int config_experts_biased(const struct config_model *m)
{
    return m->topk_method == TOPK_NOAUX_TC;
}
