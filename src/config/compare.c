/*
 * compare.c - what has changed between two resolved configurations. Both are compared as text
 * (setting.h), so that no key of the older one has to be known.
 */
#include "config/config.h"
#include "config/setting.h"

#include <stdlib.h>
#include <string.h>

/* Another value of one of these makes another model of the same weights' names or shapes. */
static const char *const of_shapes[] = {
    "model.vocab_size",          "model.hidden_size",
    "model.num_hidden_layers",   "model.first_k_dense_replace",
    "model.intermediate_size",   "model.moe_intermediate_size",
    "model.num_attention_heads", "model.q_lora_rank",
    "model.kv_lora_rank",        "model.qk_nope_head_dim",
    "model.qk_rope_head_dim",    "model.v_head_dim",
    "model.n_routed_experts",    "model.n_shared_experts",
    "model.topk_method",         "model.num_nextn_predict_layers"};

/* Another value puts the samples into another order: some would come again, others never. */
static const char *const of_order[] = {"run.seed", "data.shuffle", "data.heldout_share"};

/* Not a property of the training: fingerprints tell whether the data are the same. */
static const char *const of_no_account[] = {"run.", "debug.", "data.train", "data.heldout"};

/* The list has the key itself, or a section, with its dot, that it stands in. */
static bool is_among(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(list[i]);
        const bool section = list[i][length - 1] == '.';
        if (!strncmp(key, list[i], length) && (section || !key[length])) return true;
    }
    return false;
}

#define IS_AMONG(key, list) is_among(key, list, sizeof(list) / sizeof *(list))

/* Differences in keys that begin with prefix; known_only: not those that the text before lacks. */
static void compare(const char *before, const struct config *cfg, const char *prefix,
                    bool known_only, struct err_list *refused, struct err_list *taken)
{
    char *text = config_to_text(cfg);
    struct setting now = {.rest = text}, then;
    while (setting_next(&now)) {
        const bool order = IS_AMONG(now.key, of_order);
        if (strncmp(now.key, prefix, strlen(prefix)) != 0 ||
            (!order && IS_AMONG(now.key, of_no_account)))
            continue;
        const bool known = setting_find(&then, before, now.key);
        if (known ? setting_equal(&now, &then) : known_only) continue;
        err_add(order || IS_AMONG(now.key, of_shapes) ? refused : taken,
                "%s: %.*s in the checkpoint, %.*s now%s", now.key, known ? then.n_value : 3,
                known ? then.value : "not", now.n_value, now.value,
                order ? ": another order of the data, of which some would come again and some never"
                      : "");
    }
    free(text);
}

void config_compare(const char *before, const struct config *cfg, struct err_list *refused,
                    struct err_list *taken)
{
    compare(before, cfg, "", false, refused, taken);
}

void config_compare_model(const char *before, const struct config *cfg, struct err_list *differ)
{
    compare(before, cfg, "model.", true, differ, differ);
}
