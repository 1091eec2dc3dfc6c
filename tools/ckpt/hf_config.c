/*
 * hf_config.c - see hf_config.h. The keys that both sides know go over as they stand and are
 * checked by the configuration's own rules; what is left is renamed, or must have the one value
 * that this program computes.
 */
#include "hf_config.h"

#include "foreign.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES = 1 << 20 };

/* Same name, same meaning. null in the file is "not given", but for q_lora_rank. */
static const char *const same[] = {"vocab_size",
                                   "hidden_size",
                                   "num_hidden_layers",
                                   "first_k_dense_replace",
                                   "intermediate_size",
                                   "moe_intermediate_size",
                                   "num_attention_heads",
                                   "num_key_value_heads",
                                   "q_lora_rank",
                                   "kv_lora_rank",
                                   "qk_nope_head_dim",
                                   "qk_rope_head_dim",
                                   "v_head_dim",
                                   "n_routed_experts",
                                   "num_experts_per_tok",
                                   "norm_topk_prob",
                                   "routed_scaling_factor",
                                   "rms_norm_eps",
                                   "max_position_embeddings",
                                   "initializer_range",
                                   "hidden_act",
                                   "attention_bias",
                                   "attention_dropout",
                                   "tie_word_embeddings",
                                   "moe_layer_freq",
                                   NULL};

/* Read, but under another name or with a default that depends on the class. */
static const char *const translated[] = {
    "model_type", "architectures",   "n_shared_experts",    "n_group",
    "topk_group", "scoring_func",    "topk_method",         "num_nextn_predict_layers",
    "rope_theta", "rope_scaling",    "rope_parameters",     "num_mtp_layers",
    "mlp_bias",   "rope_interleave", "quantization_config", NULL};

/* Follows from others, or says how another program runs. */
static const char *const without_meaning[] = {"head_dim",
                                              "qk_head_dim",
                                              "torch_dtype",
                                              "dtype",
                                              "transformers_version",
                                              "auto_map",
                                              "_name_or_path",
                                              "use_cache",
                                              "bos_token_id",
                                              "eos_token_id",
                                              "pad_token_id",
                                              "output_router_logits",
                                              "pretraining_tp",
                                              "ep_size",
                                              NULL};

struct reader {
    json_t *root;
    const char *path;
    bool is_v2;
    FILE *yaml;
    struct err_list *errs;
};

static bool is_in(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (!strcmp(*list, name)) return true;
    return false;
}

static json_t *get(const struct reader *r, const char *key)
{
    json_t *value = json_object_get(r->root, key);
    return json_is_null(value) ? NULL : value;
}

static void put(struct reader *r, int indent, const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    CHECK(text, "no memory for a value");
    fprintf(r->yaml, "%*s%s: %s\n", indent, "", key, text);
    free(text);
}

static void put_or(struct reader *r, const char *key, const json_t *value, const char *preset)
{
    if (value)
        put(r, 2, key, value);
    else
        fprintf(r->yaml, "  %s: %s\n", key, preset);
}

/* Another program would compute something else with this value. */
static void want(struct reader *r, const char *where, const char *key, const json_t *value,
                 bool is_right, const char *expected)
{
    if (is_right) return;
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    err_add(r->errs, "%s: %s%s: found %.80s, expected %s", r->path, where, key,
            text ? text : "nothing", expected);
    free(text);
}

static bool find_class(struct reader *r)
{
    const char *type = json_string_value(get(r, "model_type"));
    const char *class = json_string_value(json_array_get(get(r, "architectures"), 0));
    const bool v3 = (class && !strcmp(class, "DeepseekV3ForCausalLM")) ||
                    (type && !strcmp(type, "deepseek_v3"));
    r->is_v2 = !v3 && ((class && !strcmp(class, "DeepseekV2ForCausalLM")) ||
                       (type && !strcmp(type, "deepseek_v2")));
    if (v3 || r->is_v2) return true;
    err_add(r->errs, "%s: model_type: found %.80s, expected deepseek_v3 or deepseek_v2", r->path,
            type ? type : "nothing");
    return false;
}

static double number(const json_t *rope, const char *key, double preset)
{
    const json_t *value = json_object_get(rope, key);
    return json_is_number(value) ? json_number_value(value) : preset;
}

/* The factor on cos and sin follows from mscale and mscale_all_dim when both are given, and is that
 * of mscale 1 otherwise; a stated attention_factor must be the one that we compute. */
static void put_mscale(struct reader *r, const json_t *rope, const char *name)
{
    double mscale = number(rope, "mscale", 0);
    const double all_dim = number(rope, "mscale_all_dim", 0), factor = number(rope, "factor", 1);
    const bool both = mscale != 0 && all_dim != 0;
    const json_t *stated = json_object_get(rope, "attention_factor");
    if (!both && !json_is_number(stated)) mscale = 1;
    const double grown = log(factor) * 0.1;
    const double ours = (grown * mscale + 1) / (grown * all_dim + 1);
    want(r, name, ".mscale", json_object_get(rope, "mscale"), both || all_dim == 0,
         "a number beside mscale_all_dim");
    want(r, name, ".attention_factor", stated,
         !json_is_number(stated) || fabs(json_number_value(stated) - ours) <= 1e-6 * ours,
         "what follows from mscale and mscale_all_dim");
    fprintf(r->yaml, "    mscale: %.17g\n    mscale_all_dim: %.17g\n", mscale, all_dim);
}

static void put_yarn(struct reader *r, const json_t *rope, const char *name)
{
    static const char *const known[] = {"type",
                                        "rope_type",
                                        "rope_theta",
                                        "factor",
                                        "beta_fast",
                                        "beta_slow",
                                        "mscale",
                                        "mscale_all_dim",
                                        "attention_factor",
                                        "original_max_position_embeddings",
                                        NULL};
    const char *key;
    json_t *value;
    fputs("  rope_scaling:\n    type: yarn\n", r->yaml);
    json_object_foreach((json_t *)rope, key, value)
    {
        want(r, name, ".", value, is_in(known, key) || json_is_null(value), "no such key");
        if (!strcmp(key, "factor") || !strcmp(key, "beta_fast") || !strcmp(key, "beta_slow") ||
            !strcmp(key, "original_max_position_embeddings"))
            if (!json_is_null(value)) put(r, 4, key, value);
    }
    put_mscale(r, rope, name);
}

/* rope_theta and rope_scaling, or, in files of newer programs, both in rope_parameters. */
static void put_rope(struct reader *r)
{
    const char *name = get(r, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const json_t *rope = get(r, name), *theta = json_object_get(rope, "rope_theta");
    const json_t *type = json_object_get(rope, "rope_type");
    put_or(r, "rope_theta", theta ? theta : get(r, "rope_theta"), "10000");
    if (!rope) return;
    if (!type) type = json_object_get(rope, "type");
    const char *text = json_string_value(type);
    want(r, name, ".rope_type", type, text && (!strcmp(text, "yarn") || !strcmp(text, "default")),
         "default or yarn");
    if (text && !strcmp(text, "yarn")) put_yarn(r, rope, name);
}

static void put_router(struct reader *r)
{
    const json_t *norm = get(r, "norm_topk_prob");
    put_or(r, "scoring_func", get(r, "scoring_func"), r->is_v2 ? "softmax" : "sigmoid");
    put_or(r, "topk_method", get(r, "topk_method"), r->is_v2 ? "greedy" : "noaux_tc");
    put_or(r, "n_group", get(r, "n_group"), "1");
    put_or(r, "topk_group", get(r, "topk_group"), "1");
    if (!norm) fprintf(r->yaml, "  norm_topk_prob: %s\n", r->is_v2 ? "false" : "true");
    want(r, "", "norm_topk_prob", norm, !r->is_v2 || !json_is_true(norm),
         "false: programs differ in what true means in DeepSeek-V2");
}

static void read_quantization(struct reader *r, struct hf_settings *set)
{
    const json_t *q = get(r, "quantization_config"),
                 *block = json_object_get(q, "weight_block_size");
    const char *method = json_string_value(json_object_get(q, "quant_method"));
    set->block[0] = set->block[1] = 128;
    if (!q) return;
    set->is_fp8 = method && !strcmp(method, "fp8");
    want(r, "quantization_config.", "quant_method", json_object_get(q, "quant_method"), set->is_fp8,
         "fp8");
    for (int d = 0; block && d < 2; d++) {
        const json_int_t n = json_integer_value(json_array_get(block, (size_t)d));
        want(r, "quantization_config.", "weight_block_size", block,
             json_array_size(block) == 2 && n > 0 && n <= 1 << 20, "two counts");
        if (n > 0 && n <= 1 << 20) set->block[d] = (int)n;
    }
}

static void list_unused(const struct reader *r, struct hf_settings *set)
{
    const char *key;
    json_t *value;
    size_t n = 0;
    FILE *out = open_memstream(&set->unused, &n);
    CHECK(out, "no memory for a list of keys");
    json_object_foreach(r->root, key, value)
    {
        if (!is_in(same, key) && !is_in(translated, key) && !is_in(without_meaning, key))
            fprintf(out, "%s%.80s", ftell(out) > 0 ? ", " : "", key);
    }
    CHECK(!fclose(out) && set->unused, "no memory for a list of keys");
    err_printable(set->unused);
}

/* The section model as YAML, from the JSON; what is wrong with it goes to errs. */
static char *translate(struct reader *r, struct hf_settings *set)
{
    char *text = NULL;
    size_t n = 0;
    r->yaml = open_memstream(&text, &n);
    CHECK(r->yaml, "no memory for a model");
    fputs("model:\n", r->yaml);
    for (int i = 0; same[i]; i++) {
        const json_t *value = json_object_get(r->root, same[i]);
        if (get(r, same[i]) || (value && !strcmp(same[i], "q_lora_rank")))
            put(r, 2, same[i], value);
    }
    const json_t *mtp = get(r, "num_nextn_predict_layers");
    put_or(r, "num_nextn_predict_layers", mtp ? mtp : get(r, "num_mtp_layers"), "0");
    put_or(r, "n_shared_experts", get(r, "n_shared_experts"), "0");
    put_router(r);
    put_rope(r);
    want(r, "", "rope_interleave", get(r, "rope_interleave"),
         !json_is_false(get(r, "rope_interleave")), "true");
    want(r, "", "mlp_bias", get(r, "mlp_bias"), !json_is_true(get(r, "mlp_bias")), "false");
    read_quantization(r, set);
    CHECK(!fclose(r->yaml) && text, "no memory for a model");
    return text;
}

/* The faults of the text made above, without its lines and columns, which nobody has seen. */
static void read_yaml(struct config *cfg, struct reader *r, const char *yaml)
{
    struct err_list found = {0};
    config_try_read(cfg, "yaml", yaml, &found);
    for (const char *line = found.text; line && *line; line = strchr(line, '\n') + 1) {
        const char *what = strstr(line, ": ") + 2;
        if (!strncmp(what, "model.", 6)) what += 6;
        err_add(r->errs, "%s: %.*s", r->path, (int)strcspn(what, "\n"), what);
    }
    err_free(&found);
}

int hf_config_try_read(struct config *cfg, struct hf_settings *set, const char *path,
                       struct err_list *errs)
{
    struct fault fault = {0};
    struct reader r = {.path = path, .errs = errs};
    const int n_errs = errs->n;
    memset(cfg, 0, sizeof *cfg);
    *set = (struct hf_settings){0};
    r.root = foreign_try_json(path, CONFIG_BYTES, &fault);
    if (!r.root) {
        err_add(errs, "%s", fault.why);
        return -1;
    }
    if (find_class(&r)) {
        char *yaml = translate(&r, set);
        if (errs->n == n_errs) read_yaml(cfg, &r, yaml);
        list_unused(&r, set);
        free(yaml);
    }
    json_decref(r.root);
    return errs->n == n_errs ? 0 : -1;
}

void hf_settings_free(struct hf_settings *set)
{
    free(set->unused);
    *set = (struct hf_settings){0};
}

char *hf_config_section(const char *text)
{
    static const char head[] = "model:\n";
    const char *begin = text;
    while (begin && strncmp(begin, head, sizeof head - 1) != 0)
        if ((begin = strchr(begin, '\n'))) begin++;
    if (!begin) return NULL;
    const char *end = begin + sizeof head - 1;
    while (*end == ' ') {
        end += strcspn(end, "\n");
        end += *end == '\n';
    }
    char *section = strndup(begin, (size_t)(end - begin));
    CHECK(section, "no memory for a model");
    return section;
}

char *hf_config_yaml(const struct config *cfg)
{
    char *text = config_to_text(cfg), *section = hf_config_section(text);
    CHECK(section, "a configuration without a model");
    free(text);
    return section;
}
