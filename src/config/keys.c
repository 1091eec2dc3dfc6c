/* keys.c - the key table; see keys.h. Rows stand in the order in which they are printed. */
#include "config/keys.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const char *const backends[] = {"auto", "cpu", "cuda", NULL};
static const char *const on_bad_shards[] = {"stop", "skip", NULL};
static const char *const on_errors[] = {"stop", "warn", NULL};
static const char *const scorings[] = {"sigmoid", "softmax", NULL};
static const char *const topk_methods[] = {"noaux_tc", "greedy", "group_limited_greedy", NULL};
static const char *const rope_types[] = {"default", "yarn", NULL};
static const char *const mtp_hiddens[] = {"normed", "raw", NULL};
static const char *const on_spikes[] = {"none", "rollback", NULL};
static const char *const units[] = {"tokens", "steps", NULL};
static const char *const dtypes[] = {"f32", "bf16", NULL}; /* DTYPE_F32, DTYPE_BF16 */
static const char *const bad_values[] = {"nan", "inf", "huge", NULL};
static const char *const faults[] = {"none", "stop", "kill", "crash", "hang", NULL};
static const char *const lr_schedules[] = {"constant", "cosine", "linear", "stages", NULL};

/* Widths are bounded so that no count of the largest layer leaves 64 bits; experts and MTP modules
 * by what the router's kernels (topk.h) and the model (config.h) have room for. */
enum { MAX_LAYERS = 1 << 10, MAX_WIDTH = 1 << 18, MAX_VOCAB = 1 << 24, MAX_EXPERTS = 2048 };
#define MAX_COUNT 9007199254740992.0 /* 2^53: the integers that 1e15 notation can name exactly */

#define AT(field) offsetof(struct config, field)
#define INT(name, field, lo, hi, preset, text)                                                     \
    {                                                                                              \
        name, KEY_INT, AT(field), lo, hi, 0, NULL, preset, text                                    \
    }
#define INT64(name, field, lo, preset, text)                                                       \
    {                                                                                              \
        name, KEY_INT64, AT(field), lo, MAX_COUNT, 0, NULL, preset, text                           \
    }
#define NUMBER(name, field, lo, hi, flags, preset, text)                                           \
    {                                                                                              \
        name, KEY_NUMBER, AT(field), lo, hi, flags, NULL, preset, text                             \
    }
#define BOOL(name, field, preset, text)                                                            \
    {                                                                                              \
        name, KEY_BOOL, AT(field), 0, 1, 0, NULL, preset, text                                     \
    }
#define CHOICE(name, field, choices, preset, text)                                                 \
    {                                                                                              \
        name, KEY_CHOICE, AT(field), 0, 0, 0, choices, preset, text                                \
    }
#define TEXT(name, field, flags, preset, text)                                                     \
    {                                                                                              \
        name, KEY_TEXT, AT(field), 0, 0, flags, NULL, preset, text                                 \
    }
#define SOURCES(name, field, preset, text)                                                         \
    {                                                                                              \
        name, KEY_SOURCES, AT(field), 0, 0, 0, NULL, preset, text                                  \
    }
#define STAGES(name, field, lo, hi, flags, text)                                                   \
    {                                                                                              \
        name, KEY_STAGES, AT(field), lo, hi, flags, NULL, "[]", text                               \
    }
#define RANGES(name, field, text)                                                                  \
    {                                                                                              \
        name, KEY_RANGES, AT(field), 0, MAX_COUNT, 0, NULL, "[]", text                             \
    }
#define TOKEN_ID(name, field, meaning)                                                             \
    {                                                                                              \
        name, KEY_INT, AT(field), 0, MAX_VOCAB - 1, KEY_NULLABLE, NULL, "null", meaning            \
    }
#define FIXED(name, preset, text)                                                                  \
    {                                                                                              \
        name, KEY_FIXED, 0, 0, 0, 0, NULL, preset, text                                            \
    }

const struct key config_keys[] = {
    TEXT("run.dir", run.dir, 0, NULL, "directory of everything the run writes"),
    INT64("run.seed", run.seed, 0, "1234", "seed of initial weights and sample order"),
    CHOICE("run.backend", run.backend, backends, "auto",
           "where to compute; auto: cpu, as this version has no cuda"),
    BOOL("run.overwrite", run.overwrite, "false",
         "start anew where an earlier run has been: its checkpoints are removed"),
    TEXT("run.resume", run.resume, 0, "auto",
         "auto: resume from the newest valid checkpoint in run.dir; none: start anew; or the path "
         "of "
         "one"),
    TEXT("run.init_from", run.init_from, KEY_EMPTY, "\"\"",
         "a checkpoint whose weights a new run starts with"),
    BOOL("run.init_from_partial", run.init_from_partial, "false",
         "load what init_from has of the model; its other tensors start with random values"),
    NUMBER("run.deadline_s", run.deadline_s, 0, INFINITY, KEY_ABOVE_MIN, "600",
           "collective timeout in seconds"),
    NUMBER("run.exit_after", run.exit_after, 0, INFINITY, 0, "0",
           "minutes after which the run saves and ends with exit code 75, to be started again; 0: "
           "never"),
    BOOL("run.tensorboard", run.tensorboard, "false",
         "write the numbers of metrics.jsonl for TensorBoard, too: run.dir/tensorboard"),
    BOOL("run.expert_counts", run.expert_counts, "false",
         "write the tokens of every expert of every layer in each step's line of metrics.jsonl"),
    BOOL("run.verbose", run.verbose, "false",
         "print which ranks are on which node; also --verbose"),
    INT("run.threads", run.threads, 0, 4096, "0",
        "threads of each rank, at most cores / ranks that share them; 0: OMP_NUM_THREADS, or that"),

    INT("topology.tp", topology.tp, 1, 1 << 20, "1",
        "tensor parallelism: ranks that share each layer's dense part"),
    INT("topology.ep", topology.ep, 1, 1 << 20, "1",
        "expert parallelism: ranks that share each layer's experts"),
    INT("topology.ranks_per_node", topology.ranks_per_node, 0, 1 << 20, "0",
        "consecutive ranks that count as a node; 0: ask MPI"),

    SOURCES("data.train", data.train, NULL, "token shards, or directories of shards, to train on"),
    SOURCES("data.heldout", data.heldout, "[]", "token shards that are only evaluated"),
    NUMBER("data.heldout_share", data.heldout_share, 0, 1, KEY_BELOW_MAX, "0",
           "share of each source of train, its end, that is only evaluated"),
    CHOICE("data.on_bad_shard", data.on_bad_shard, on_bad_shards, "stop",
           "a truncated, altered or empty shard at the start: stop, or leave it out and say so"),
    INT("data.sequence_length", data.sequence_length, 2, 1 << 24, "4096", "tokens a sequence"),
    BOOL("data.document_mask", data.document_mask, "false",
         "attention and labels stay inside a document"),
    BOOL("data.shuffle", data.shuffle, "true", "read the samples of an epoch in a random order"),
    INT("data.max_epochs", data.max_epochs, 0, INT_MAX, "0",
        "passes over the data; needing more is an error; 0: no limit"),
    RANGES("data.skip_samples", data.skip_samples,
           "samples that are skipped: ranges of numbers as `samples` in metrics.jsonl counts "
           "them, without the end"),

    INT("model.vocab_size", model.vocab_size, 2, MAX_VOCAB, NULL, "token ids"),
    INT("model.hidden_size", model.hidden_size, 1, MAX_WIDTH, NULL, "width of the model"),
    INT("model.num_hidden_layers", model.num_hidden_layers, 1, MAX_LAYERS, NULL,
        "layers, without MTP modules"),
    INT("model.first_k_dense_replace", model.first_k_dense_replace, 0, MAX_LAYERS, NULL,
        "leading layers with a dense MLP instead of experts"),
    INT("model.intermediate_size", model.intermediate_size, 1, MAX_WIDTH, NULL,
        "width of the dense MLP"),
    INT("model.moe_intermediate_size", model.moe_intermediate_size, 1, MAX_WIDTH, NULL,
        "width of one expert"),
    INT("model.num_attention_heads", model.num_attention_heads, 1, 1 << 14, NULL,
        "attention heads"),
    {"model.q_lora_rank", KEY_INT, AT(model.q_lora_rank), 1, MAX_WIDTH, KEY_NULLABLE, NULL, NULL,
     "width of the query latent; null: queries come straight from the hidden state"},
    INT("model.kv_lora_rank", model.kv_lora_rank, 1, MAX_WIDTH, NULL,
        "width of the key-value latent"),
    INT("model.qk_nope_head_dim", model.qk_nope_head_dim, 1, 1 << 14, NULL,
        "query and key values of a head that are not rotated"),
    INT("model.qk_rope_head_dim", model.qk_rope_head_dim, 2, 1 << 14, NULL,
        "query and key values of a head that are rotated"),
    INT("model.v_head_dim", model.v_head_dim, 1, 1 << 14, NULL, "value width of a head"),
    INT("model.n_routed_experts", model.n_routed_experts, 1, MAX_EXPERTS, NULL,
        "experts to choose from in a layer"),
    INT("model.n_shared_experts", model.n_shared_experts, 0, 1 << 10, NULL,
        "experts that every token visits"),
    INT("model.num_experts_per_tok", model.num_experts_per_tok, 1, MAX_EXPERTS, NULL,
        "routed experts a token visits"),
    INT("model.n_group", model.n_group, 1, MAX_EXPERTS, NULL, "groups of experts; 1: no groups"),
    INT("model.topk_group", model.topk_group, 1, MAX_EXPERTS, NULL,
        "groups in which a token may choose experts"),
    CHOICE("model.scoring_func", model.scoring_func, scorings, "sigmoid",
           "router logits to scores"),
    CHOICE("model.topk_method", model.topk_method, topk_methods, "noaux_tc",
           "noaux_tc: selection bias, group score is the sum of its two best; greedy: no groups; "
           "group_limited_greedy: group score is its best"),
    BOOL("model.norm_topk_prob", model.norm_topk_prob, "true",
         "weights of the chosen experts are divided by their sum"),
    NUMBER("model.routed_scaling_factor", model.routed_scaling_factor, 0, INFINITY, KEY_ABOVE_MIN,
           NULL, "factor on the weights of the chosen experts"),
    NUMBER("model.rms_norm_eps", model.rms_norm_eps, 0, 1, KEY_ABOVE_MIN, "1e-6",
           "added to the mean square in every norm but those of the latents"),
    NUMBER("model.latent_norm_eps", model.latent_norm_eps, 0, 1, KEY_ABOVE_MIN, "1e-6",
           "the same in q_a_layernorm and kv_a_layernorm; DeepSeek's code and Hugging Face's have "
           "1e-6 there, whatever rms_norm_eps is"),
    NUMBER("model.rope_theta", model.rope_theta, 1, INFINITY, KEY_ABOVE_MIN, "10000",
           "base of the rotary frequencies"),
    CHOICE("model.rope_scaling.type", model.rope_type, rope_types, "default",
           "default: plain rotary positions; yarn: scaled as the keys below say, at any length"),
    NUMBER("model.rope_scaling.factor", model.rope_factor, 1, INFINITY, 0, "40",
           "yarn: context extension"),
    NUMBER("model.rope_scaling.beta_fast", model.rope_beta_fast, 0, INFINITY, KEY_ABOVE_MIN, "32",
           "yarn: rotations above which a frequency is kept"),
    NUMBER("model.rope_scaling.beta_slow", model.rope_beta_slow, 0, INFINITY, KEY_ABOVE_MIN, "1",
           "yarn: rotations below which a frequency is divided by factor"),
    NUMBER("model.rope_scaling.mscale", model.rope_mscale, 0, INFINITY, 0, "1",
           "yarn: cos and sin grow with it, relative to mscale_all_dim"),
    NUMBER("model.rope_scaling.mscale_all_dim", model.rope_mscale_all_dim, 0, INFINITY, 0, "1",
           "yarn: the softmax scale grows with it; 0: it does not"),
    INT("model.rope_scaling.original_max_position_embeddings",
        model.rope_original_max_position_embeddings, 1, 1 << 24, "4096",
        "yarn: context length before the extension"),
    INT("model.max_position_embeddings", model.max_position_embeddings, 1, 1 << 24, "4096",
        "longest sequence_length that is accepted"),
    INT("model.num_nextn_predict_layers", model.num_nextn_predict_layers, 0, MAX_MTP, NULL,
        "multi-token-prediction (MTP) modules; 0: none"),
    CHOICE("model.mtp_hidden", model.mtp_hidden, mtp_hiddens, "normed",
           "what feeds the next MTP module: the hidden state after (normed) or before (raw) the "
           "final norm"),
    NUMBER("model.initializer_range", model.initializer_range, 0, INFINITY, KEY_ABOVE_MIN, "0.006",
           "standard deviation of every initial matrix"),
    TOKEN_ID("model.bos_token_id", model.bos_token_id,
             "id that begins a text, for exports; null: what the shards tell"),
    TOKEN_ID("model.eos_token_id", model.eos_token_id,
             "id that ends a text, for exports; null: what the shards tell"),
    TOKEN_ID("model.pad_token_id", model.pad_token_id,
             "id that fills texts up, for exports; null: what the shards tell"),
    FIXED("model.hidden_act", "silu", "activation of the MLPs"),
    FIXED("model.attention_bias", "false", "no layer has biases"),
    FIXED("model.attention_dropout", "0", "there is no dropout"),
    FIXED("model.tie_word_embeddings", "false", "embedding and head are two matrices"),
    FIXED("model.moe_layer_freq", "1", "every layer after the dense ones has experts"),
    {"model.num_key_value_heads", KEY_SAME, AT(model.num_attention_heads), 1, 1 << 14, 0, NULL,
     "same", "has no meaning of its own in latent attention"},

    INT64("train.steps", train.steps, 1, NULL, "optimizer steps of the whole run"),
    INT("train.global_batch", train.global_batch, 1, 1 << 24, NULL, "sequences a step"),
    INT("train.micro_batch", train.micro_batch, 1, 1 << 20, "1",
        "sequences a rank computes at once; more are accumulated"),
    STAGES("train.global_batch_stages", train.global_batch_stages, 1, 1 << 24, KEY_WHOLE,
           "how global_batch changes"),
    INT("train.global_batch_multiple", train.global_batch_multiple, 0, 1 << 24, "0",
        "a batch between two stages is rounded down to such a multiple; 0: global_batch"),
    CHOICE("train.schedule_unit", train.schedule_unit, units, "tokens",
           "unit of `until` in stage lists"),
    CHOICE("train.compute_dtype", train.compute_dtype, dtypes, "f32",
           "weights and activations in products; masters and gradients are f32"),
    INT("train.eval_every", train.eval_every, 0, INT_MAX, "0",
        "steps between held-out losses; 0: only after the last"),
    INT("train.eval_sequences", train.eval_sequences, 0, INT_MAX, "0",
        "held-out sequences an evaluation reads; 0: all"),
    INT("train.sample_every", train.sample_every, 0, INT_MAX, "0",
        "steps between samples of text that the model makes; 0: none"),
    TEXT("train.sample_prompt", train.sample_prompt, KEY_EMPTY, "\"\"",
         "what the samples continue; empty: the beginning of a document"),
    INT("train.sample_tokens", train.sample_tokens, 1, 1 << 20, "64",
        "tokens of a sample, at most"),
    NUMBER("train.sample_temperature", train.sample_temperature, 0, 100, 0, "0",
           "0: always the most likely token; 1: drawn as the model says"),
    NUMBER("train.sample_top_p", train.sample_top_p, 0, 1, 0, "1",
           "samples are drawn from the fewest tokens that have this probability"),
    TEXT("train.sample_tokenizer", train.sample_tokenizer, KEY_EMPTY, "\"\"",
         "tokenizer.json of the training data, for samples; empty: bytes"),
    INT("train.log_every", train.log_every, 1, INT_MAX, "10", "steps between console lines"),
    INT("train.loss_chunk_tokens", train.loss_chunk_tokens, 1, 1 << 24, "1024",
        "tokens whose logits exist at once"),
    NUMBER("train.router_bias_speed", train.router_bias_speed, 0, 1, 0, "0.001",
           "step of the selection bias after each optimizer step"),
    STAGES("train.router_bias_speed_stages", train.router_bias_speed_stages, 0, 1, 0,
           "how router_bias_speed changes"),
    BOOL("train.router_bias_centred", train.router_bias_centred, "false",
         "subtract the mean of a layer's bias steps"),
    NUMBER("train.balance_loss_alpha", train.balance_loss_alpha, 0, INFINITY, 0, "1e-4",
           "weight of the sequence-wise balance loss"),
    NUMBER("train.mtp_loss_weight", train.mtp_loss_weight, 0, INFINITY, 0, "0.3",
           "weight of the mean MTP loss"),
    STAGES("train.mtp_loss_weight_stages", train.mtp_loss_weight_stages, 0, INFINITY, 0,
           "how mtp_loss_weight changes"),
    INT("train.max_nonfinite_steps", train.max_nonfinite_steps, 0, INT_MAX, "3",
        "steps in a row that are skipped when a loss or gradient is not finite; one more ends the "
        "run"),
    CHOICE("train.on_spike", train.on_spike, on_spikes, "none",
           "rollback: after a spike, or a number that is not finite, return to a checkpoint before "
           "it and pass over its samples"),
    NUMBER("train.spike_loss", train.spike_loss, 0, INFINITY, 0, "1.5",
           "a loss above so many times its median is a spike; 0: none is"),
    NUMBER("train.spike_grad_norm", train.spike_grad_norm, 0, INFINITY, 0, "10",
           "the same of gradient norms"),
    INT("train.spike_window", train.spike_window, 1, MAX_SPIKE_WINDOW, "64",
        "steps before, all of which it takes, of which that is the median"),
    INT("train.skip_before", train.skip_before, 0, 1 << 20, "1",
        "batches before that of the spike that are skipped with it"),
    INT("train.skip_after", train.skip_after, 0, 1 << 20, "0",
        "batches after that of the spike that are skipped with it"),
    INT("train.max_rollbacks", train.max_rollbacks, 1, MAX_ROLLBACKS, "3",
        "rollbacks of the whole run; one more ends it"),

    NUMBER("optimizer.lr", optimizer.lr, 0, INFINITY, KEY_ABOVE_MIN, NULL,
           "learning rate after the warm-up"),
    NUMBER("optimizer.min_lr", optimizer.min_lr, 0, INFINITY, 0, "0",
           "learning rate at the last step (cosine, linear)"),
    CHOICE("optimizer.schedule", optimizer.schedule, lr_schedules, "cosine",
           "learning rate after the warm-up; stages: as lr_stages says"),
    INT64("optimizer.warmup_steps", optimizer.warmup_steps, 0, "0",
          "steps in which the learning rate rises linearly"),
    STAGES("optimizer.lr_stages", optimizer.lr_stages, 0, INFINITY, 0, "how lr changes"),
    NUMBER("optimizer.beta1", optimizer.beta1, 0, 1, KEY_BELOW_MAX, "0.9", "decay of the mean"),
    NUMBER("optimizer.beta2", optimizer.beta2, 0, 1, KEY_BELOW_MAX, "0.95",
           "decay of the mean square"),
    NUMBER("optimizer.eps", optimizer.eps, 0, INFINITY, KEY_ABOVE_MIN, "1e-8",
           "added to the root of the mean square"),
    NUMBER("optimizer.weight_decay", optimizer.weight_decay, 0, INFINITY, 0, "0.1",
           "decoupled weight decay"),
    BOOL("optimizer.decay_all", optimizer.decay_all, "false", "decay norms as well as matrices"),
    NUMBER("optimizer.clip", optimizer.clip, 0, INFINITY, 0, "1",
           "largest global gradient norm; 0: do not clip"),
    CHOICE("optimizer.moments_dtype", optimizer.moments_dtype, dtypes, "f32",
           "mean and mean square in memory"),

    INT64("checkpoint.every", checkpoint.every, 0, "0", "steps between checkpoints; 0: none"),
    NUMBER("checkpoint.every_minutes", checkpoint.every_minutes, 0, INFINITY, 0, "30",
           "minutes between checkpoints; 0: none"),
    BOOL("checkpoint.on_exit", checkpoint.on_exit, "true", "one after the last step"),
    BOOL("checkpoint.on_signal", checkpoint.on_signal, "true",
         "one when the run is asked to end early"),
    INT("checkpoint.keep_last", checkpoint.keep_last, 0, INT_MAX, "2",
        "how many of the newest to keep; 0: all"),
    INT64("checkpoint.keep_every", checkpoint.keep_every, 0, "0",
          "also keep checkpoints whose step is a multiple of this; 0: none"),
    BOOL("checkpoint.keep_best", checkpoint.keep_best, "false",
         "save one when a held-out loss is the lowest so far, and keep it until a lower one is "
         "saved"),
    CHOICE(
        "checkpoint.on_error", checkpoint.on_error, on_errors, "stop",
        "one that cannot be written, or a line of metrics.jsonl: stop, or warn and train on; the "
        "last checkpoint: exit code 74"),
    BOOL("checkpoint.verify", checkpoint.verify, "false", "read back what was written and compare"),
    INT64("checkpoint.file_bytes", checkpoint.file_bytes, 1 << 16, "4294967296",
          "a checkpoint's files are not larger, unless one tensor is"),

    BOOL("debug.token_hash", debug.token_hash, "false",
         "log a hash of each step's tokens and sample numbers"),
    INT64("debug.dump_step", debug.dump_step, 0, "0",
          "write per-token losses and expert ids of this step; 0: none"),
    BOOL("debug.param_hash", debug.param_hash, "false",
         "print a hash and the norm of all parameters at the end"),
    BOOL("debug.balanced_routing", debug.balanced_routing, "false",
         "send token n to experts n*K .. n*K+K-1 (mod E)"),
    BOOL("debug.poison_memory", debug.poison_memory, "false",
         "fill fresh and released memory with NaN"),
    BOOL("debug.profile", debug.profile, "false",
         "time every operation and print where the steps' time went"),
    INT64("debug.bad_grad_step", debug.bad_grad_step, 0, "0",
          "put a bad value into a gradient at this step; 0: never"),
    TEXT("debug.bad_grad_param", debug.bad_grad_param, KEY_EMPTY, "\"\"",
         "the parameter that gets it"),
    INT("debug.bad_grad_rank", debug.bad_grad_rank, 0, 1 << 20, "0", "the rank that puts it"),
    CHOICE("debug.bad_grad_value", debug.bad_grad_value, bad_values, "nan",
           "the value; huge is 1e38, whose square does not fit F32"),
    BOOL("debug.check_exchange", debug.check_exchange, "false",
         "compare what ranks send and expect before every exchange of rows"),
    CHOICE(
        "debug.fault", debug.fault, faults, "none",
        "what fault_rank does to itself at fault_at: SIGSTOP, SIGKILL, SIGSEGV, or wait forever"),
    INT("debug.fault_rank", debug.fault_rank, 0, 1 << 20, "0", "the rank with the fault"),
    TEXT("debug.fault_at", debug.fault_at, KEY_EMPTY, "\"\"",
         "a place as messages name it: step 5, dispatch forward of layer 3"),
};
const int n_config_keys = (int)(sizeof config_keys / sizeof *config_keys);

int key_find(const char *name, size_t n)
{
    for (int i = 0; i < n_config_keys; i++)
        if (strlen(config_keys[i].name) == n && !memcmp(config_keys[i].name, name, n)) return i;
    return -1;
}

bool key_is_section(const char *name, size_t n)
{
    for (int i = 0; i < n_config_keys; i++)
        if (!strncmp(config_keys[i].name, name, n) && config_keys[i].name[n] == '.') return true;
    return false;
}
