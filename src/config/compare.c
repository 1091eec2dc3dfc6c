/*
 * compare.c - what has changed between two resolved configurations. Both are texts that print.c has
 * made, perhaps in different versions of the program: the keys are compared as text, so that none
 * has to be known.
 */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 4 };

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

/* Not a property of the training: fingerprints tell whether the data are the same. */
static const char *const of_no_account[] = {"run.", "debug.", "data.train", "data.heldout"};

struct line {
    char key[160], value[4096];
};

/* The next "key: value" of the text, with the sections it stands in; false at the end. */
static bool next_line(const char **at, size_t section[MAX_DEPTH], char sections[160],
                      struct line *line)
{
    while (**at) {
        const char *text = *at + strspn(*at, " "), *end = *at + strcspn(*at, "\n");
        const char *colon = strchr(text, ':');
        const size_t depth = (size_t)(text - *at) / 2;
        *at = *end ? end + 1 : end;
        if (*text == '#' || text == end || !colon || colon > end || depth >= MAX_DEPTH) continue;
        const size_t n = depth ? section[depth - 1] : 0;
        const int n_key = (int)(colon - text);
        if (colon + 1 == end) { /* a section */
            section[depth] =
                n + (size_t)snprintf(sections + n, 160 - n, "%.*s.", n_key < 60 ? n_key : 60, text);
            continue;
        }
        snprintf(line->key, sizeof line->key, "%.*s%.*s", (int)n, sections, n_key, text);
        snprintf(line->value, sizeof line->value, "%.*s", (int)(end - colon - 2), colon + 2);
        return true;
    }
    return false;
}

static bool find(const char *text, const char *key, struct line *line)
{
    size_t section[MAX_DEPTH] = {0};
    char sections[160];
    while (next_line(&text, section, sections, line))
        if (!strcmp(line->key, key)) return true;
    return false;
}

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

/* Differences in keys that begin with prefix; known_only: not those that the text before lacks. */
static void compare(const char *before, const struct config *cfg, const char *prefix,
                    bool known_only, struct err_list *refused, struct err_list *taken)
{
    char *text = config_to_text(cfg), sections[160];
    const char *at = text;
    size_t section[MAX_DEPTH] = {0};
    struct line now, then;
    while (next_line(&at, section, sections, &now)) {
        if (strncmp(now.key, prefix, strlen(prefix)) != 0 ||
            is_among(now.key, of_no_account, sizeof of_no_account / sizeof *of_no_account))
            continue;
        const bool known = find(before, now.key, &then);
        if (known ? !strcmp(now.value, then.value) : known_only) continue;
        const bool shape = is_among(now.key, of_shapes, sizeof of_shapes / sizeof *of_shapes);
        err_add(shape ? refused : taken, "%s: %s in the checkpoint, %s now", now.key,
                known ? then.value : "not", now.value);
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
