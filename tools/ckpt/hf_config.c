/*
 * hf_config.c - see hf_config.h. A table has the keys that both sides know and what transformers'
 * classes take those for that a file leaves out (configuration_deepseek_v3.py and _v2.py of 5.24);
 * their values go over as they stand and are checked by the configuration's own rules. What is left
 * is renamed, or must have the one value that this program computes, or has no effect.
 */
#include "hf_config.h"

#include "foreign.h"
#include "hf_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES = 1 << 20 };

static const char *const class_names[] = {"deepseek_v3", "deepseek_v2", "kimi_k2"};

/* A key of the same name in the model. Presets are JSON; NULL: the class needs the key. */
static const struct key_row {
    const char *name;
    const char *v3, *v2;
    const char *null;     /* what null stands for; NULL: it is no value */
    bool has_one_value;   /* the only one, in all classes */
    const char *alias[2]; /* another name that the class v3, v2 knows it by */
} rows[] = {
    {"vocab_size", "129280", "102400", NULL, false, {NULL}},
    {"hidden_size", "7168", "4096", NULL, false, {NULL}},
    {"num_hidden_layers", "61", "32", NULL, false, {NULL}},
    {"first_k_dense_replace", "3", "0", NULL, false, {NULL}},
    {"intermediate_size", "18432", "11008", NULL, false, {NULL}},
    {"moe_intermediate_size", "2048", "1407", NULL, false, {NULL}},
    {"num_attention_heads", "128", "32", NULL, false, {NULL}},
    {"num_key_value_heads", "", "", "", false, {NULL}},
    {"q_lora_rank", "1536", "1536", "null", false, {NULL}},
    {"kv_lora_rank", "512", "512", NULL, false, {NULL}},
    {"qk_nope_head_dim", "128", "128", NULL, false, {NULL}},
    {"qk_rope_head_dim", "64", "64", NULL, false, {NULL}},
    {"v_head_dim", "128", "128", NULL, false, {NULL}},
    {"n_routed_experts", "256", "64", NULL, false, {"num_local_experts", "num_experts"}},
    {"n_shared_experts", "1", "2", NULL, false, {NULL}},
    {"num_experts_per_tok", "8", NULL, NULL, false, {NULL}},
    {"routed_scaling_factor", "2.5", "1.0", NULL, false, {NULL}},
    {"rms_norm_eps", "1e-6", "1e-6", NULL, false, {NULL}},
    {"max_position_embeddings", "4096", "2048", NULL, false, {NULL}},
    {"initializer_range", "0.02", "0.02", NULL, false, {NULL}},
    {"num_nextn_predict_layers", "1", "0", "0", false, {"num_mtp_layers", NULL}},
    {"hidden_act", "silu", "silu", NULL, true, {NULL}},
    {"attention_bias", "false", "false", NULL, true, {NULL}},
    {"attention_dropout", "0", "0", "0", true, {NULL}},
    {"tie_word_embeddings", "false", "false", NULL, true, {NULL}},
    {"moe_layer_freq", "1", "1", "1", true, {NULL}},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* Read, but not by the table. */
static const char *const translated[] = {"model_type",
                                         "architectures",
                                         "n_group",
                                         "topk_group",
                                         "norm_topk_prob",
                                         "scoring_func",
                                         "topk_method",
                                         "rope_theta",
                                         "rope_scaling",
                                         "rope_parameters",
                                         "partial_rotary_factor",
                                         "original_max_position_embeddings",
                                         "mlp_bias",
                                         "rope_interleave",
                                         "bos_token_id",
                                         "eos_token_id",
                                         "pad_token_id",
                                         "head_dim",
                                         "quantization_config",
                                         NULL};

/* Follows from others, or says how another program runs. */
static const char *const without_meaning[] = {
    "qk_head_dim",    "torch_dtype",   "dtype",     "transformers_version",
    "auto_map",       "_name_or_path", "use_cache", "output_router_logits",
    "pretraining_tp", "ep_size",       NULL};

/* Transformers' modules ask any configuration for these and compute something else with them. */
static const char *const other_models[] = {"per_layer_config",
                                           "mtp_per_layer_config",
                                           "layer_types",
                                           "mtp_hidden_states_first",
                                           "chain_hidden_post_norm",
                                           "logits_mup_width_multiplier",
                                           "unpadded_vocab_size",
                                           NULL};

static bool is_in(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (!strcmp(*list, name)) return true;
    return false;
}

static bool is_in_table(const struct hf_reader *r, const char *name)
{
    for (int i = 0; i < N_ROWS; i++) {
        const char *alias = rows[i].alias[r->class == HF_V2];
        if (!strcmp(rows[i].name, name)) /* DeepseekV2Config has no MTP modules */
            return r->class != HF_V2 || strcmp(name, "num_nextn_predict_layers") != 0;
        if (alias && !strcmp(alias, name)) return true;
    }
    return false;
}

static json_t *get(const struct hf_reader *r, const char *key)
{
    json_t *value = json_object_get(r->root, key);
    return json_is_null(value) ? NULL : value;
}

void hf_list(FILE *list, const char *section, const char *key)
{
    fprintf(list, "%s%s%s%.80s", ftell(list) > 0 ? ", " : "", section, *section ? "." : "", key);
}

void hf_want(struct hf_reader *r, const char *section, const char *key, const json_t *value,
             bool is_right, const char *expected)
{
    if (is_right) return;
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    err_add(r->errs, "%s: %s%s%s: found %.80s, expected %s", r->path, section, *section ? "." : "",
            key, text ? text : "nothing", expected);
    free(text);
}

static void put(struct hf_reader *r, const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    CHECK(text, "no memory for a value");
    fprintf(r->yaml, "  %s: %s\n", key, text);
    free(text);
}

/* What the class takes for a key that is not there. */
static void put_preset(struct hf_reader *r, const char *key, const char *preset)
{
    char both[128];
    fprintf(r->yaml, "  %s: %s\n", key, preset);
    snprintf(both, sizeof both, "%s %s", key, preset);
    hf_list(r->left_out, "", both);
}

/* transformers knows the class by model_type alone; by architectures it is known here, too. */
static bool find_class(struct hf_reader *r)
{
    const char *type = json_string_value(get(r, "model_type"));
    const char *name = json_string_value(json_array_get(get(r, "architectures"), 0));
    const bool says_v2 = name && !strcmp(name, "DeepseekV2ForCausalLM");
    const bool says_v3 = name && !strcmp(name, "DeepseekV3ForCausalLM");
    for (int c = HF_V3; c <= HF_KIMI_K2; c++) {
        if (type ? strcmp(type, class_names[c]) != 0 : c == HF_V2 ? !says_v2 : !says_v3) continue;
        r->class = (enum hf_class)c;
        hf_want(r, "", "architectures", get(r, "architectures"), c == HF_V2 ? !says_v3 : !says_v2,
                "the class of model_type");
        return true;
    }
    err_add(r->errs, "%s: model_type: found %.80s, expected deepseek_v3, deepseek_v2 or kimi_k2",
            r->path, type ? type : "nothing");
    return false;
}

/* The value of a key that has two names, which must agree. */
static const json_t *find_value(struct hf_reader *r, const struct key_row *row)
{
    const char *alias = row->alias[r->class == HF_V2];
    const json_t *value = json_object_get(r->root, row->name);
    const json_t *other = alias ? json_object_get(r->root, alias) : NULL;
    hf_want(r, "", row->name, value, !value || !other || json_equal(value, other),
            "what its other name says");
    return value ? value : other;
}

static void put_row(struct hf_reader *r, const struct key_row *row)
{
    const json_t *value = find_value(r, row);
    const char *preset = r->class == HF_V2                         ? row->v2
                         : r->class == HF_V3 || row->has_one_value ? row->v3
                                                                   : NULL;
    if (!value && preset && *preset && !row->has_one_value)
        put_preset(r, row->name, preset);
    else if (json_is_null(value) && row->null && *row->null)
        fprintf(r->yaml, "  %s: %s\n", row->name, row->null);
    else if (value && !(json_is_null(value) && row->null))
        put(r, row->name, value);
}
double hf_max_positions(const struct hf_reader *r)
{
    return hf_number(r->root, "max_position_embeddings", r->class == HF_V2 ? 2048 : 4096);
}

/* Says so when a key has a value and the class computes `computed` whatever it is. */
static void note_fixed(struct hf_reader *r, const char *key, const char *computed)
{
    const json_t *value = get(r, key);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    if (text && strcmp(text, computed) != 0)
        fprintf(r->notes, "%s %.80s has no effect, as in transformers: %s has %s\n", key, text,
                class_names[r->class], computed);
    free(text);
}

static void put_or(struct hf_reader *r, const char *key, const char *preset)
{
    const json_t *value = json_object_get(r->root, key);
    if (!value && preset)
        put_preset(r, key, preset);
    else if (value)
        put(r, key, value);
}

/* An id, or a list of which one has room. */
static void put_id(struct hf_reader *r, const char *key, const char *preset)
{
    const json_t *value = json_object_get(r->root, key);
    const json_t *first = json_is_array(value) ? json_array_get(value, 0) : value;
    const double vocab = hf_number(r->root, "vocab_size", 1e9);
    const bool is_none = json_is_integer(first) &&
                         (json_number_value(first) < 0 || json_number_value(first) >= vocab);
    if (is_none)
        fprintf(r->notes, "%s %lld is not an id of the vocabulary: treated as null\n", key,
                (long long)json_integer_value(first));
    else if (first)
        put(r, key, first);
    else if (preset && !value)
        put_preset(r, key, preset);
    if (json_array_size(value) > 1)
        fprintf(r->notes, "%s is a list of %zu: only its first is kept\n", key,
                json_array_size(value));
}

static void put_ids(struct hf_reader *r)
{
    static const char *const bos[] = {"0", "1", NULL}, *const eos[] = {"1", "2", NULL};
    put_id(r, "bos_token_id", bos[r->class]);
    put_id(r, "eos_token_id", eos[r->class]);
    put_id(r, "pad_token_id", NULL);
}

/* DeepseekV2TopkRouter. */
static void put_router_v2(struct hf_reader *r)
{
    const json_t *method = json_object_get(r->root, "topk_method");
    const char *text = method ? json_string_value(method) : "greedy";
    const bool grouped = text && !strcmp(text, "group_limited_greedy");
    hf_want(r, "", "topk_method", method, grouped || (text && !strcmp(text, "greedy")),
            "greedy or group_limited_greedy");
    hf_want(r, "", "norm_topk_prob", get(r, "norm_topk_prob"),
            !json_is_true(get(r, "norm_topk_prob")),
            "false: programs differ in what true means in DeepSeek-V2");
    note_fixed(r, "scoring_func", "\"softmax\"");
    fprintf(r->yaml, "  scoring_func: softmax\n  topk_method: %s\n  norm_topk_prob: false\n",
            grouped ? "group_limited_greedy" : "greedy");
    if (grouped) {
        put_or(r, "n_group", NULL);
        put_or(r, "topk_group", NULL);
    } else {
        note_fixed(r, "n_group", "1");
        note_fixed(r, "topk_group", "1");
        fputs("  n_group: 1\n  topk_group: 1\n", r->yaml);
    }
}

/* DeepseekV3TopkRouter; DeepSeek's own code, of kimi_k2, reads two keys more, and knows of each the
 * same value only. */
static void put_router_v3(struct hf_reader *r)
{
    const bool known = r->class == HF_V3;
    static const char *const fixed[][2] = {{"scoring_func", "\"sigmoid\""},
                                           {"topk_method", "\"noaux_tc\""}};
    for (int i = 0; i < 2; i++) {
        if (known)
            note_fixed(r, fixed[i][0], fixed[i][1]);
        else
            put_or(r, fixed[i][0], NULL);
    }
    if (known) fputs("  scoring_func: sigmoid\n  topk_method: noaux_tc\n", r->yaml);
    put_or(r, "n_group", known ? "8" : NULL);
    put_or(r, "topk_group", known ? "4" : NULL);
    if (json_is_null(json_object_get(r->root, "norm_topk_prob")))
        fputs("  norm_topk_prob: false\n", r->yaml); /* as Python takes it */
    else
        put_or(r, "norm_topk_prob", known ? "true" : NULL);
}

static void read_quantization(struct hf_reader *r, struct hf_settings *set)
{
    const json_t *q = get(r, "quantization_config"),
                 *block = json_object_get(q, "weight_block_size");
    const char *method = json_string_value(json_object_get(q, "quant_method"));
    set->block[0] = set->block[1] = 128;
    if (!q) return;
    set->is_fp8 = method && !strcmp(method, "fp8");
    hf_want(r, "quantization_config", "quant_method", json_object_get(q, "quant_method"),
            set->is_fp8, "fp8");
    for (int d = 0; block && d < 2; d++) {
        const json_int_t n = json_integer_value(json_array_get(block, (size_t)d));
        hf_want(r, "quantization_config", "weight_block_size", block,
                json_array_size(block) == 2 && n > 0 && n <= 1 << 20, "two counts");
        if (n > 0 && n <= 1 << 20) set->block[d] = (int)n;
    }
}

/* Keys that must have the one value, which a model of ours has, or not be there. */
static void check_fixed(struct hf_reader *r)
{
    const json_t *interleave = json_object_get(r->root, "rope_interleave");
    const json_t *bias = json_object_get(r->root, "mlp_bias"),
                 *causal = json_object_get(r->root, "is_causal");
    if (r->class == HF_V2)
        note_fixed(r, "rope_interleave", "true");
    else
        hf_want(r, "", "rope_interleave", interleave, !interleave || json_is_true(interleave),
                "true");
    if (r->class == HF_V2)
        hf_want(r, "", "mlp_bias", bias, !bias || json_is_false(bias), "false");
    else
        note_fixed(r, "mlp_bias", "false");
    const json_t *dim = get(r, "head_dim"), *rotated = json_object_get(r->root, "qk_rope_head_dim");
    hf_want(r, "", "head_dim", dim,
            !dim || r->class == HF_V2 ||
                (rotated ? json_equal(dim, rotated) : json_integer_value(dim) == 64),
            "that of qk_rope_head_dim, as DeepseekV3Config has it");
    hf_want(r, "", "is_causal", causal, !causal || json_is_true(causal), "true");
    for (int i = 0; other_models[i]; i++)
        hf_want(r, "", other_models[i], get(r, other_models[i]),
                !get(r, other_models[i]) || json_is_false(get(r, other_models[i])), "no such key");
}

static void list_unused(struct hf_reader *r)
{
    const char *key;
    json_t *value;
    json_object_foreach(r->root, key, value)
    {
        if (!is_in_table(r, key) && !is_in(translated, key) && !is_in(without_meaning, key) &&
            !is_in(other_models, key) && strcmp(key, "is_causal") != 0)
            hf_list(r->unused, "", key);
    }
}

/* The section model as YAML, from the JSON; what is wrong with it goes to r->errs. */
static void translate(struct hf_reader *r, struct hf_settings *set)
{
    fputs("model:\n", r->yaml);
    for (int i = 0; i < N_ROWS; i++)
        if (r->class != HF_V2 || strcmp(rows[i].name, "num_nextn_predict_layers") != 0)
            put_row(r, &rows[i]);
    if (r->class == HF_V2) {
        fputs("  num_nextn_predict_layers: 0\n", r->yaml);
        put_router_v2(r);
    } else {
        put_router_v3(r);
    }
    put_ids(r);
    hf_put_rope(r);
    check_fixed(r);
    list_unused(r);
    read_quantization(r, set);
}

/* The errors of the text made above, without its lines and columns, which nobody has seen. */
static void read_yaml(struct config *cfg, struct hf_reader *r, const char *yaml)
{
    struct err_list found = {0};
    config_try_read(cfg, "yaml", yaml, &found);
    for (const char *line = found.text; line && *line; line = strchr(line, '\n') + 1) {
        const char *what = strstr(line, ": ");
        if (!what) continue;
        what += 2;
        if (!strncmp(what, "model.", 6)) what += 6;
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(what, ":"), what);
        const bool stated = strchr(key, '.') || json_object_get(r->root, key);
        err_add(r->errs, "%s: %.*s%s", r->path, (int)strcspn(what, "\n"), what,
                stated || !strncmp(what + strlen(key), ": missing", 9)
                    ? ""
                    : "; the file leaves it out, and this is what its class takes");
    }
    err_free(&found);
}

/* Texts that grow; free with close_texts, which returns them. */
static FILE *open_text(char **text, size_t *n)
{
    FILE *out = open_memstream(text, n);
    CHECK(out, "no memory for a model");
    return out;
}

static void close_text(FILE *out, char *const *text)
{
    CHECK(!fclose(out) && *text, "no memory for a model");
}

/* The lines for the user. */
static char *join_notes(const struct hf_reader *r, const char *notes, const char *unused,
                        const char *left_out)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_text(&text, &n);
    fputs(notes, out);
    if (*left_out)
        fprintf(out, "keys that config.json leaves out, as %s has them: %s\n",
                class_names[r->class], left_out);
    if (*unused) fprintf(out, "keys of config.json that have no meaning here: %s\n", unused);
    close_text(out, &text);
    return text;
}

static void read_model(struct config *cfg, struct hf_settings *set, struct hf_reader *r, int n_errs)
{
    char *text[4] = {NULL};
    size_t n[4];
    FILE **const out[] = {&r->yaml, &r->notes, &r->unused, &r->left_out};
    for (int i = 0; i < 4; i++) *out[i] = open_text(&text[i], &n[i]);
    translate(r, set);
    for (int i = 0; i < 4; i++) close_text(*out[i], &text[i]);
    if (r->errs->n == n_errs) read_yaml(cfg, r, text[0]);
    for (int i = 1; i < 4; i++)
        for (char *c = text[i]; *c; c++)
            if (*c != '\n' && ((unsigned char)*c < ' ' || *c == 0x7f)) *c = '?';
    set->notes = join_notes(r, text[1], text[2], text[3]);
    for (int i = 0; i < 4; i++) free(text[i]);
}

int hf_config_try_read(struct config *cfg, struct hf_settings *set, const char *path,
                       struct err_list *errs)
{
    struct fault fault = {0};
    struct hf_reader r = {.path = path, .errs = errs};
    const int n_errs = errs->n;
    memset(cfg, 0, sizeof *cfg);
    *set = (struct hf_settings){0};
    r.root = foreign_try_json(path, CONFIG_BYTES, &fault);
    if (!r.root) {
        err_add(errs, "%s", fault.why);
        return -1;
    }
    if (find_class(&r)) read_model(cfg, set, &r, n_errs);
    json_decref(r.root);
    return errs->n == n_errs ? 0 : -1;
}

void hf_settings_print(const struct hf_settings *set, FILE *out)
{
    for (const char *line = set->notes; line && *line; line = strchr(line, '\n') + 1)
        fprintf(out, "note: %.*s\n", (int)strcspn(line, "\n"), line);
}

void hf_settings_free(struct hf_settings *set)
{
    free(set->notes);
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
