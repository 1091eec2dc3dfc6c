/* hint.c - what an unknown key was probably meant to be; see key_hint in keys.h. */
#include "config/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 64 };

/* Names that other trainers give to these keys. */
static const char *const also_called[][2] = {
    {"learning_rate", "optimizer.lr"},
    {"max_lr", "optimizer.lr"},
    {"min_learning_rate", "optimizer.min_lr"},
    {"lr_scheduler", "optimizer.schedule"},
    {"lr_decay_style", "optimizer.schedule"},
    {"lr_warmup_iters", "optimizer.warmup_steps"},
    {"adam_beta1", "optimizer.beta1"},
    {"adam_beta2", "optimizer.beta2"},
    {"adam_eps", "optimizer.eps"},
    {"clip_grad", "optimizer.clip"},
    {"grad_clip", "optimizer.clip"},
    {"max_norm", "optimizer.clip"},
    {"max_grad_norm", "optimizer.clip"},
    {"seq_len", "data.sequence_length"},
    {"seq_length", "data.sequence_length"},
    {"max_seq_len", "data.sequence_length"},
    {"batch_size", "train.global_batch"},
    {"global_batch_size", "train.global_batch"},
    {"micro_batch_size", "train.micro_batch"},
    {"local_batch_size", "train.micro_batch"},
    {"train_iters", "train.steps"},
    {"max_steps", "train.steps"},
    {"eval_interval", "train.eval_every"},
    {"log_interval", "train.log_every"},
    {"log_freq", "train.log_every"},
    {"dtype", "train.compute_dtype"},
    {"torch_dtype", "train.compute_dtype"},
    {"aux_loss_alpha", "train.balance_loss_alpha"},
    {"moe_aux_loss_coeff", "train.balance_loss_alpha"},
    {"load_balance_coeff", "train.router_bias_speed"},
    {"moe_router_bias_update_rate", "train.router_bias_speed"},
    {"tensor_parallel_degree", "topology.tp"},
    {"tensor_model_parallel_size", "topology.tp"},
    {"expert_parallel_degree", "topology.ep"},
    {"expert_model_parallel_size", "topology.ep"},
    {"output_dir", "run.dir"},
    {"dim", "model.hidden_size"},
    {"n_layers", "model.num_hidden_layers"},
    {"num_layers", "model.num_hidden_layers"},
    {"n_heads", "model.num_attention_heads"},
    {"num_experts", "model.n_routed_experts"},
    {"top_k", "model.num_experts_per_tok"},
    {"moe_router_topk", "model.num_experts_per_tok"},
    {"score_func", "model.scoring_func"},
    {"route_scale", "model.routed_scaling_factor"},
    {"route_norm", "model.norm_topk_prob"},
    {"norm_eps", "model.rms_norm_eps"},
    {"init_method_std", "model.initializer_range"},
    {"mtp_num_layers", "model.num_nextn_predict_layers"},
    {"rope_type", "model.rope_scaling.type"},
};

static const char *leaf_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Lower case, '-' as '_': the spellings that people mix up. */
static void normalise(char out[MAX_NAME], const char *name)
{
    int n = 0;
    for (; name[n] && n < MAX_NAME - 1; n++)
        out[n] = name[n] == '-' ? '_' : (char)tolower((unsigned char)name[n]);
    out[n] = '\0';
}

/* A key inside a section of that leaf (below another section), or NULL. */
static const char *find_inner_section(const char *leaf)
{
    char inner[MAX_NAME + 2];
    snprintf(inner, sizeof inner, ".%s.", leaf);
    for (int i = 0; i < n_config_keys; i++)
        if (strstr(config_keys[i].name, inner)) return config_keys[i].name;
    return NULL;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, substitutions and swaps of neighbours that turn a into b. */
static int distance(const char *a, const char *b)
{
    const int n_a = (int)strlen(a), n_b = (int)strlen(b);
    int d[MAX_NAME][MAX_NAME];
    for (int i = 0; i <= n_a; i++) d[i][0] = i;
    for (int j = 0; j <= n_b; j++) d[0][j] = j;
    for (int i = 1; i <= n_a; i++)
        for (int j = 1; j <= n_b; j++) {
            const int changed = a[i - 1] != b[j - 1];
            d[i][j] = min_int(min_int(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + changed);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min_int(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n_a][n_b];
}

/* The key of that leaf in another section, or -1. */
static int find_elsewhere(const char *leaf)
{
    for (int i = 0; i < n_config_keys; i++)
        if (!strcmp(leaf_of(config_keys[i].name), leaf)) return i;
    return -1;
}

/* Spelling mistakes, or one name being the beginning of the other: warmup, warmup_steps. */
static int unlikeness(const char *leaf, const char *known)
{
    const size_t n = strlen(leaf), n_known = strlen(known);
    const bool begins = n >= 3 && n < n_known && known[n] == '_' && !strncmp(leaf, known, n);
    const bool goes_on = n > n_known && leaf[n_known] == '_' && !strncmp(leaf, known, n_known);
    const int mistakes = distance(leaf, known);
    return begins || (goes_on && n_known >= 3) ? min_int(mistakes, 2) : mistakes;
}

/* The key of the nearest spelling among the keys and what others call them, or NULL. */
static const char *find_nearest(const char *name, const char *leaf)
{
    const size_t n_section = (size_t)(leaf_of(name) - name);
    const char *best = NULL;
    int best_cost = 2 * min_int(1 + (int)strlen(leaf) / 3, 4) + 2;
    for (int i = 0; i < n_config_keys; i++) {
        const char *known = config_keys[i].name;
        const bool here =
            (size_t)(leaf_of(known) - known) == n_section && !strncmp(known, name, n_section);
        const int cost = 2 * unlikeness(leaf, leaf_of(known)) + !here; /* own section wins a tie */
        if (cost < best_cost) best_cost = cost, best = known;
    }
    for (size_t i = 0; i < sizeof also_called / sizeof *also_called; i++) {
        const int cost = 2 * distance(leaf, also_called[i][0]);
        if (cost < best_cost) best_cost = cost, best = also_called[i][1];
    }
    return best;
}

/* The nearest section of a name that has no dot, or NULL. */
static const char *find_section(const char *name, char section[MAX_NAME])
{
    int best_cost = 3;
    for (int i = 0; i < n_config_keys; i++) {
        const char *known = config_keys[i].name;
        char first[MAX_NAME];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(known, "."), known);
        const int cost = distance(name, first);
        if (cost < best_cost) best_cost = cost, strcpy(section, first);
    }
    return best_cost < 3 ? section : NULL;
}

const char *key_hint(const char *name, char buf[KEY_HINT_BYTES])
{
    char leaf[MAX_NAME], section[MAX_NAME];
    normalise(leaf, leaf_of(name));
    const int elsewhere = find_elsewhere(leaf);
    if (!strchr(name, '.') && find_section(leaf, section)) {
        snprintf(buf, KEY_HINT_BYTES, "nearest known section is %s", section);
        return buf;
    }
    const char *known = elsewhere >= 0 ? config_keys[elsewhere].name : NULL;
    if (known && strncmp(known, name, (size_t)(leaf_of(known) - known))) {
        snprintf(buf, KEY_HINT_BYTES, "%s belongs to section %.*s: %s", leaf,
                 (int)(leaf_of(known) - known - 1), known, known);
        return buf;
    }
    if ((known = find_inner_section(leaf))) {
        snprintf(buf, KEY_HINT_BYTES, "nearest known section is %.*s",
                 (int)(leaf_of(known) - known - 1), known);
        return buf;
    }
    const char *nearest = find_nearest(name, leaf);
    if (nearest)
        snprintf(buf, KEY_HINT_BYTES, "nearest known key is %s", nearest);
    else
        snprintf(buf, KEY_HINT_BYTES, "no known key is near; all keys are in configs/README.md");
    return buf;
}
