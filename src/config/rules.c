/*
 * rules.c - the consistency of keys with each other, and with the number of ranks. A rule names
 * the keys it reads, the one to change first; it is skipped when one of them is bad or missing, so
 * that one mistake gives one message.
 */
#include "base/path.h"
#include "base/text.h"
#include "config/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct check {
    const struct config *cfg;
    struct err_list *errs;
    int n_ranks; /* 0: rules without ranks */
    const struct rule *rule;
};

enum { MAX_RULE_KEYS = 5 };
struct rule {
    const char *key[MAX_RULE_KEYS];
    void (*check)(struct check *c);
};

static const struct origin *origin_of(const struct check *c, const char *name)
{
    const int row = key_find(name, strlen(name));
    CHECK(row >= 0, "rule about an unknown key %s", name);
    return &c->cfg->source->origin[row];
}

/* The message stands where the reader can change something: at a key on the command line, else at
 * the first key that the main file gives, else at the first of any file, else at the file. */
static struct place place_of_rule(const struct check *c)
{
    const char *main_file = c->cfg->source->file;
    struct place at = {main_file, 1, 1}, own = {main_file, 0, 0};
    for (int i = MAX_RULE_KEYS - 1; i >= 0; i--) {
        if (!c->rule->key[i]) continue;
        const struct origin *origin = origin_of(c, c->rule->key[i]);
        if (origin->kind == ORIGIN_COMMAND_LINE) return origin->at;
        if (origin->kind != ORIGIN_FILE) continue;
        at = origin->at;
        if (at.file == main_file) own = at;
    }
    return own.line ? own : at;
}

static void broken(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void broken(struct check *c, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fault_add(c->errs, place_of_rule(c), "%s: %s", c->rule->key[0], text);
}

static void run_rules(struct check *c, const struct rule *rules, int n)
{
    for (int r = 0; r < n; r++) {
        bool usable = true;
        for (int i = 0; i < MAX_RULE_KEYS && rules[r].key[i]; i++) {
            const enum origin_kind kind = origin_of(c, rules[r].key[i])->kind;
            usable = usable && kind != ORIGIN_BAD && kind != ORIGIN_MISSING;
        }
        c->rule = &rules[r];
        if (usable) rules[r].check(c);
    }
}

static void dense_layers(struct check *c)
{
    const struct config_model *m = &c->cfg->model;
    if (m->first_k_dense_replace > m->num_hidden_layers)
        broken(c, "found %d, expected at most model.num_hidden_layers %d", m->first_k_dense_replace,
               m->num_hidden_layers);
}

static void rope_pairs(struct check *c)
{
    const int dim = c->cfg->model.qk_rope_head_dim;
    if (dim % 2) broken(c, "found %d, expected an even number: values are rotated in pairs", dim);
}

static void key_value_heads(struct check *c)
{
    const int have = c->cfg->source->n_key_value_heads, want = c->cfg->model.num_attention_heads;
    if (have && have != want)
        broken(c, "found %d, expected model.num_attention_heads %d (or no such key)", have, want);
}

static void id_in_vocabulary(struct check *c, int id)
{
    const int vocab = c->cfg->model.vocab_size;
    if (id >= vocab) broken(c, "found %d, expected less than model.vocab_size %d", id, vocab);
}
static void bos_in_vocabulary(struct check *c)
{
    id_in_vocabulary(c, c->cfg->model.bos_token_id);
}
static void eos_in_vocabulary(struct check *c)
{
    id_in_vocabulary(c, c->cfg->model.eos_token_id);
}
static void pad_in_vocabulary(struct check *c)
{
    id_in_vocabulary(c, c->cfg->model.pad_token_id);
}

static void groups(struct check *c)
{
    const struct config_model *m = &c->cfg->model;
    if (m->n_routed_experts % m->n_group)
        broken(c, "found %d, expected a divisor of model.n_routed_experts %d", m->n_group,
               m->n_routed_experts);
    else if (m->n_group > 1 && m->topk_method == TOPK_NOAUX_TC && m->n_routed_experts == m->n_group)
        broken(c,
               "found %d groups of 1 expert, expected 2 or more experts in a group: noaux_tc "
               "scores a group by the sum of its two best",
               m->n_group);
    if (m->n_group > 1 && m->topk_method == TOPK_GREEDY)
        broken(c, "found %d, expected 1: model.topk_method greedy has no groups", m->n_group);
}

static void kept_groups(struct check *c)
{
    const struct config_model *m = &c->cfg->model;
    if (m->topk_group > m->n_group)
        broken(c, "found %d, expected at most model.n_group %d", m->topk_group, m->n_group);
}

static void chosen_experts(struct check *c)
{
    const struct config_model *m = &c->cfg->model;
    const int k = m->num_experts_per_tok;
    const bool grouped = m->n_routed_experts % m->n_group == 0 && m->topk_group <= m->n_group;
    const int group = m->n_routed_experts / m->n_group;
    if (k > m->n_routed_experts)
        broken(c, "found %d, expected at most model.n_routed_experts %d", k, m->n_routed_experts);
    else if (grouped && k > m->topk_group * group)
        broken(c, "found %d, expected at most %d: model.topk_group %d x %d expert%s a group", k,
               m->topk_group * group, m->topk_group, group, text_s(group));
}

static void yarn_betas(struct check *c)
{
    const struct config_model *m = &c->cfg->model;
    if (m->rope_type == ROPE_YARN && m->rope_beta_fast < m->rope_beta_slow)
        broken(c, "found %g, expected model.rope_scaling.beta_slow %g or more", m->rope_beta_fast,
               m->rope_beta_slow);
}

static void context_length(struct check *c)
{
    const int T = c->cfg->data.sequence_length;
    if (T > c->cfg->model.max_position_embeddings)
        broken(c, "found %d, expected at most model.max_position_embeddings %d", T,
               c->cfg->model.max_position_embeddings);
}

static void mtp_targets(struct check *c)
{
    const int depth = c->cfg->model.num_nextn_predict_layers, T = c->cfg->data.sequence_length;
    if (depth >= T)
        broken(c,
               "found %d, expected less than data.sequence_length %d: module k predicts k + 1 "
               "tokens ahead",
               depth, T);
}

static bool has_path(const struct data_sources *sources, const char *path)
{
    for (int i = 0; i < sources->n; i++)
        for (int k = 0; k < sources->at[i].n_paths; k++)
            if (!strcmp(sources->at[i].path[k], path)) return true;
    return false;
}

static void heldout_is_apart(struct check *c)
{
    const struct data_sources *heldout = &c->cfg->data.heldout;
    for (int i = 0; i < heldout->n; i++)
        for (int k = 0; k < heldout->at[i].n_paths; k++)
            if (has_path(&c->cfg->data.train, heldout->at[i].path[k]))
                broken(c, "found %s, expected paths that are not in data.train",
                       heldout->at[i].path[k]);
}

static void need_ids_below(struct check *c, const struct data_sources *sources)
{
    const int vocab = c->cfg->model.vocab_size;
    for (int i = 0; i < sources->n; i++) {
        const struct data_source *s = &sources->at[i];
        if (s->eod_id >= vocab || s->bos_id >= vocab)
            broken(c, "found %s %d, expected less than model.vocab_size %d",
                   s->eod_id >= vocab ? "eod_id" : "bos_id",
                   s->eod_id >= vocab ? s->eod_id : s->bos_id, vocab);
    }
}

static void train_ids(struct check *c)
{
    need_ids_below(c, &c->cfg->data.train);
}

static void heldout_ids(struct check *c)
{
    need_ids_below(c, &c->cfg->data.heldout);
}

static void heldout_weights(struct check *c)
{
    const struct data_sources *heldout = &c->cfg->data.heldout;
    for (int i = 0; i < heldout->n; i++)
        if (heldout->at[i].weight != 1)
            broken(c, "found weight %g, expected none: held-out sources count by their size",
                   heldout->at[i].weight);
}

static void heldout_once(struct check *c)
{
    if (c->cfg->data.heldout_share > 0 && c->cfg->data.heldout.n > 0)
        broken(c, "found %g, expected 0 with data.heldout", c->cfg->data.heldout_share);
}

static void eval_has_data(struct check *c)
{
    const struct config_data *d = &c->cfg->data;
    if (c->cfg->train.eval_every && d->heldout.n == 0 && d->heldout_share == 0)
        broken(c, "found %d, expected 0 without data.heldout or data.heldout_share",
               c->cfg->train.eval_every);
}

static void best_has_data(struct check *c)
{
    const struct config_data *d = &c->cfg->data;
    if (c->cfg->checkpoint.keep_best && d->heldout.n == 0 && d->heldout_share == 0)
        broken(c, "found true, expected false without data.heldout or data.heldout_share");
}

static void rollback_has_saves(struct check *c)
{
    const struct config_checkpoint *k = &c->cfg->checkpoint;
    if (c->cfg->train.on_spike == ON_SPIKE_ROLLBACK && k->every == 0 && k->every_minutes == 0)
        broken(c, "found rollback, expected none without checkpoint.every or every_minutes");
}

static void train_has_data(struct check *c)
{
    if (c->cfg->data.train.n == 0) broken(c, "found no paths, expected at least one");
}

static void micro_in_global(struct check *c)
{
    const struct config_train *t = &c->cfg->train;
    if (t->global_batch % t->micro_batch)
        broken(c, "found %d, expected a multiple of train.micro_batch %d: %d = %d x %.4g",
               t->global_batch, t->micro_batch, t->global_batch, t->micro_batch,
               (double)t->global_batch / t->micro_batch);
}

static int batch_multiple(const struct config_train *t)
{
    return t->global_batch_multiple ? t->global_batch_multiple : t->global_batch;
}

static void batch_stages(struct check *c)
{
    const struct config_train *t = &c->cfg->train;
    const int multiple = batch_multiple(t);
    for (int i = 0; i < t->global_batch_stages.n; i++)
        if (fmod(t->global_batch_stages.at[i].value, multiple) != 0)
            broken(c, "found value %.0f in stage %d, expected a multiple of %s %d",
                   t->global_batch_stages.at[i].value, i,
                   t->global_batch_multiple ? "train.global_batch_multiple" : "train.global_batch",
                   multiple);
}

static void multiple_is_used(struct check *c)
{
    const struct config_train *t = &c->cfg->train;
    if (t->global_batch_multiple && t->global_batch_stages.n == 0)
        broken(c, "found %d, expected 0 without train.global_batch_stages",
               t->global_batch_multiple);
    else if (t->global_batch_multiple && t->global_batch % t->global_batch_multiple)
        broken(c, "found %d, expected a divisor of train.global_batch %d", t->global_batch_multiple,
               t->global_batch);
}

static void lr_order(struct check *c)
{
    const struct config_optimizer *o = &c->cfg->optimizer;
    if (o->min_lr > o->lr)
        broken(c, "found %g, expected at most optimizer.lr %g", o->min_lr, o->lr);
}

static void lr_stages_match(struct check *c)
{
    const struct config_optimizer *o = &c->cfg->optimizer;
    if (o->schedule == LR_STAGES && o->lr_stages.n == 0)
        broken(c, "found no stages, expected some with optimizer.schedule stages");
    if (o->schedule != LR_STAGES && o->lr_stages.n)
        broken(c, "found %d stages, expected none unless optimizer.schedule is stages",
               o->lr_stages.n);
}

static void bad_grad_pair(struct check *c)
{
    const struct config_debug *d = &c->cfg->debug;
    if (d->bad_grad_step && !*d->bad_grad_param)
        broken(c, "found step %lld, expected debug.bad_grad_param to name a parameter",
               (long long)d->bad_grad_step);
    if (!d->bad_grad_step && *d->bad_grad_param)
        broken(c, "found 0, expected a step for debug.bad_grad_param %s", d->bad_grad_param);
    if (d->bad_grad_step > c->cfg->train.steps)
        broken(c, "found %lld, expected at most train.steps %lld", (long long)d->bad_grad_step,
               (long long)c->cfg->train.steps);
}

static void dump_in_run(struct check *c)
{
    if (c->cfg->debug.dump_step > c->cfg->train.steps)
        broken(c, "found %lld, expected at most train.steps %lld",
               (long long)c->cfg->debug.dump_step, (long long)c->cfg->train.steps);
}

/* checkpoints/step-NNNNNNNN.tmp/tensors-NNNNN.h5 and its like lie in it. */
static void dir_has_room(struct check *c)
{
    const size_t n = strlen(c->cfg->run.dir), room = PATH_BYTES - 128;
    if (n > room) broken(c, "found a path of %zu bytes, expected at most %zu", n, room);
}

static const struct rule rules[] = {
    {{"run.dir"}, dir_has_room},
    {{"data.sequence_length", "model.max_position_embeddings", "data.train"}, context_length},
    {{"data.train", "model.vocab_size"}, train_ids},
    {{"data.heldout", "model.vocab_size"}, heldout_ids},
    {{"data.heldout", "data.train"}, heldout_is_apart},
    {{"data.heldout"}, heldout_weights},
    {{"data.heldout_share", "data.heldout"}, heldout_once},
    {{"data.train"}, train_has_data},
    {{"model.first_k_dense_replace", "model.num_hidden_layers"}, dense_layers},
    {{"model.qk_rope_head_dim"}, rope_pairs},
    {{"model.num_key_value_heads", "model.num_attention_heads"}, key_value_heads},
    {{"model.bos_token_id", "model.vocab_size"}, bos_in_vocabulary},
    {{"model.eos_token_id", "model.vocab_size"}, eos_in_vocabulary},
    {{"model.pad_token_id", "model.vocab_size"}, pad_in_vocabulary},
    {{"model.n_group", "model.n_routed_experts", "model.topk_method"}, groups},
    {{"model.topk_group", "model.n_group"}, kept_groups},
    {{"model.num_experts_per_tok", "model.n_routed_experts", "model.n_group", "model.topk_group"},
     chosen_experts},
    {{"model.rope_scaling.beta_fast", "model.rope_scaling.beta_slow", "model.rope_scaling.type"},
     yarn_betas},
    {{"model.num_nextn_predict_layers", "data.sequence_length"}, mtp_targets},
    {{"train.global_batch", "train.micro_batch"}, micro_in_global},
    {{"train.global_batch_stages", "train.global_batch", "train.global_batch_multiple"},
     batch_stages},
    {{"train.global_batch_multiple", "train.global_batch_stages", "train.global_batch"},
     multiple_is_used},
    {{"train.eval_every", "data.heldout", "data.heldout_share"}, eval_has_data},
    {{"checkpoint.keep_best", "data.heldout", "data.heldout_share"}, best_has_data},
    {{"train.on_spike", "checkpoint.every", "checkpoint.every_minutes"}, rollback_has_saves},
    {{"optimizer.min_lr", "optimizer.lr"}, lr_order},
    {{"optimizer.lr_stages", "optimizer.schedule"}, lr_stages_match},
    {{"debug.dump_step", "train.steps"}, dump_in_run},
    {{"debug.bad_grad_step", "debug.bad_grad_param", "train.steps"}, bad_grad_pair},
};

void rules_check(const struct config *cfg, struct err_list *errs)
{
    struct check c = {.cfg = cfg, .errs = errs};
    run_rules(&c, rules, (int)(sizeof rules / sizeof *rules));
}

static void need_divisor(struct check *c, int divisor, int64_t whole, const char *what)
{
    if (whole % divisor)
        broken(c, "found %d, expected a divisor of %s %lld", divisor, what, (long long)whole);
}

static void tp_divides_ranks(struct check *c)
{
    need_divisor(c, c->cfg->topology.tp, c->n_ranks, "the number of ranks,");
}

static void tp_divides_heads(struct check *c)
{
    need_divisor(c, c->cfg->topology.tp, c->cfg->model.num_attention_heads,
                 "model.num_attention_heads");
}

static void tp_divides_vocab(struct check *c)
{
    need_divisor(c, c->cfg->topology.tp, c->cfg->model.vocab_size, "model.vocab_size");
}

static void tp_divides_dense(struct check *c)
{
    if (c->cfg->model.first_k_dense_replace > 0)
        need_divisor(c, c->cfg->topology.tp, c->cfg->model.intermediate_size,
                     "model.intermediate_size");
}

static void tp_divides_shared(struct check *c)
{
    const struct config_model *m = &c->cfg->model;
    need_divisor(c, c->cfg->topology.tp, (int64_t)m->n_shared_experts * m->moe_intermediate_size,
                 "model.n_shared_experts x model.moe_intermediate_size =");
}

static void tp_divides_tokens(struct check *c)
{
    need_divisor(c, c->cfg->topology.tp,
                 (int64_t)c->cfg->train.micro_batch * c->cfg->data.sequence_length,
                 "train.micro_batch x data.sequence_length =");
}

static void ep_divides_ranks(struct check *c)
{
    need_divisor(c, c->cfg->topology.ep, c->n_ranks, "the number of ranks,");
}

static void ep_divides_experts(struct check *c)
{
    need_divisor(c, c->cfg->topology.ep, c->cfg->model.n_routed_experts, "model.n_routed_experts");
}

/* A batch of so many sequences is cut into equal micro-batches without remainder. */
static void need_whole_batch(struct check *c, int64_t batch, const char *what)
{
    const int tp = c->cfg->topology.tp, micro = c->cfg->train.micro_batch;
    if (c->n_ranks % tp) return; /* then dp does not exist */
    const int64_t dp = c->n_ranks / tp;
    if (batch % (micro * dp))
        broken(c,
               "found %s%lld, expected a multiple of %lld = train.micro_batch %d x dp %lld (dp = "
               "%d rank%s / tp %d): %lld = %d x %lld x %.4g",
               what, (long long)batch, (long long)(micro * dp), micro, (long long)dp, c->n_ranks,
               text_s(c->n_ranks), tp, (long long)batch, micro, (long long)dp,
               (double)batch / (double)(micro * dp));
}

static void batch_is_whole(struct check *c)
{
    need_whole_batch(c, c->cfg->train.global_batch, "");
}

static void stages_are_whole(struct check *c)
{
    const struct stages *stages = &c->cfg->train.global_batch_stages;
    for (int i = 0; i < stages->n; i++) need_whole_batch(c, (int64_t)stages->at[i].value, "value ");
}

/* Between stages a ramped batch takes any multiple. */
static void multiple_is_whole(struct check *c)
{
    if (c->cfg->train.global_batch_multiple)
        need_whole_batch(c, c->cfg->train.global_batch_multiple, "");
}

static void bad_grad_rank_exists(struct check *c)
{
    if (c->cfg->debug.bad_grad_step && c->cfg->debug.bad_grad_rank >= c->n_ranks)
        broken(c, "found %d, expected less than the number of ranks, %d",
               c->cfg->debug.bad_grad_rank, c->n_ranks);
}

static const struct rule rank_rules[] = {
    {{"topology.tp"}, tp_divides_ranks},
    {{"topology.tp", "model.num_attention_heads"}, tp_divides_heads},
    {{"topology.tp", "model.vocab_size"}, tp_divides_vocab},
    {{"topology.tp", "model.intermediate_size", "model.first_k_dense_replace"}, tp_divides_dense},
    {{"topology.tp", "model.n_shared_experts", "model.moe_intermediate_size"}, tp_divides_shared},
    {{"topology.tp", "train.micro_batch", "data.sequence_length"}, tp_divides_tokens},
    {{"topology.ep"}, ep_divides_ranks},
    {{"topology.ep", "model.n_routed_experts"}, ep_divides_experts},
    {{"train.global_batch", "train.micro_batch", "topology.tp"}, batch_is_whole},
    {{"train.global_batch_stages", "train.micro_batch", "topology.tp"}, stages_are_whole},
    {{"train.global_batch_multiple", "train.micro_batch", "topology.tp"}, multiple_is_whole},
    {{"debug.bad_grad_rank", "debug.bad_grad_step"}, bad_grad_rank_exists},
};

/* What a model file may leave out, a run needs. */
static void need_run_keys(struct check *c)
{
    char expected[EXPECTED_BYTES];
    for (int row = 0; row < n_config_keys; row++) {
        const struct origin *origin = &c->cfg->source->origin[row];
        if (origin->kind == ORIGIN_MISSING)
            fault_add(c->errs, origin->at, "%s: missing, expected %s", config_keys[row].name,
                      value_expected(&config_keys[row], expected));
    }
}

int config_try_check_ranks(const struct config *cfg, int n_ranks, struct err_list *errs)
{
    const int n_errs = errs->n;
    struct check c = {.cfg = cfg, .errs = errs, .n_ranks = n_ranks};
    need_run_keys(&c);
    run_rules(&c, rank_rules, (int)(sizeof rank_rules / sizeof *rank_rules));
    return errs->n == n_errs ? 0 : -1;
}
