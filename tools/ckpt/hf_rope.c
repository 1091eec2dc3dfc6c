/*
 * hf_rope.c - rotary positions of a config.json; see hf_read.h. Source of what keys mean:
 * transformers' modeling_rope_utils.py (convert_rope_params_to_dict, standardize_rope_params,
 * _compute_yarn_parameters) and yarn_apply_mscale of its DeepSeek classes.
 */
#include "hf_read.h"

#include <math.h>
#include <string.h>

#define ORIGINAL "original_max_position_embeddings"

/* rope_scaling, or rope_parameters as newer files have it: the key that counts and its object. */
struct rope {
    const char *name;
    const json_t *object; /* NULL: neither */
};

double hf_number(const json_t *object, const char *key, double preset)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : preset;
}

/* rope_scaling wins when it has anything in it. */
static struct rope find_rope(struct hf_reader *r)
{
    const json_t *scaling = json_object_get(r->root, "rope_scaling");
    const json_t *parameters = json_object_get(r->root, "rope_parameters");
    hf_want(r, "", "rope_scaling", scaling,
            !scaling || json_is_null(scaling) || json_is_object(scaling), "null or an object");
    hf_want(r, "", "rope_parameters", parameters,
            !parameters || json_is_null(parameters) || json_is_object(parameters),
            "null or an object");
    const bool has_scaling = json_object_size(scaling) > 0;
    if (has_scaling && json_object_size(parameters) > 0 && !json_equal(scaling, parameters))
        fputs("rope_parameters has no effect beside rope_scaling, as in transformers\n", r->notes);
    return has_scaling ? (struct rope){"rope_scaling", scaling}
                       : (struct rope){"rope_parameters", parameters};
}

static void put_theta(struct hf_reader *r, const struct rope *rope)
{
    const json_t *outer = json_object_get(r->root, "rope_theta");
    const json_t *inner = json_object_get(rope->object, "rope_theta");
    const json_t *theta = inner ? inner : outer;
    hf_want(r, inner ? rope->name : "", "rope_theta", theta, !theta || json_is_number(theta),
            "a number");
    if (inner && outer && !json_equal(inner, outer))
        fprintf(r->notes, "rope_theta has no effect beside %s.rope_theta, as in transformers\n",
                rope->name);
    if (!theta) hf_list(r->left_out, "", "rope_theta 10000");
    fprintf(r->yaml, "  rope_theta: %.17g\n", theta ? json_number_value(theta) : 10000);
}

/* What is in the object and is not read. */
static void list_unused(struct hf_reader *r, const struct rope *rope, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)rope->object, key, value)
    {
        const char *const *k = known;
        while (*k && strcmp(*k, key) != 0) k++;
        if (!*k) hf_list(r->unused, rope->name, key);
    }
}

static double mscale_of(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

/* Transformers' factor on cos and sin, and ours, mscale / mscale_all_dim grown by the factor's
 * logarithm: the mscale with which both are the same. */
static void put_mscale(struct hf_reader *r, const struct rope *rope, double factor)
{
    const json_t *stated = json_object_get(rope->object, "attention_factor");
    const double given = hf_number(rope->object, "mscale", 0);
    const double all_dim = hf_number(rope->object, "mscale_all_dim", 0);
    const double below = mscale_of(factor, all_dim);
    const double amplitude = json_is_number(stated)       ? json_number_value(stated)
                             : given != 0 && all_dim != 0 ? mscale_of(factor, given) / below
                                                          : mscale_of(factor, 1);
    double mscale = given;
    if (fabs(mscale_of(factor, given) - amplitude * below) > 1e-9 * below)
        mscale = factor > 1 ? (amplitude * below - 1) / (0.1 * log(factor)) : -1;
    if (fabs(mscale - 1) < 1e-12) mscale = 1;
    hf_want(r, rope->name, "attention_factor", stated, mscale >= 0,
            factor > 1 ? "1 / (0.1 mscale_all_dim ln(factor) + 1) or more" : "1 beside factor 1");
    fprintf(r->yaml, "    mscale: %.17g\n    mscale_all_dim: %.17g\n", mscale, all_dim);
}

/* The length before the extension: the key outside the object wins. */
static double original_length(struct hf_reader *r, const struct rope *rope)
{
    const json_t *outer = json_object_get(r->root, ORIGINAL);
    const json_t *inner = json_object_get(rope->object, ORIGINAL);
    const json_t *length = outer ? outer : inner;
    hf_want(r, outer ? "" : rope->name, ORIGINAL, length, !length || json_is_number(length),
            "a number");
    if (inner && outer && !json_equal(inner, outer))
        fprintf(r->notes, "%s." ORIGINAL " has no effect beside " ORIGINAL ", as in transformers\n",
                rope->name);
    return length ? json_number_value(length) : hf_max_positions(r);
}

static void put_yarn(struct hf_reader *r, const struct rope *rope)
{
    static const char *const numbers[] = {
        "factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "attention_factor", NULL};
    const json_t *truncate = json_object_get(rope->object, "truncate");
    const json_t *factor = json_object_get(rope->object, "factor");
    for (int i = 0; numbers[i]; i++) {
        const json_t *value = json_object_get(rope->object, numbers[i]);
        hf_want(r, rope->name, numbers[i], value,
                !value || json_is_null(value) || json_is_number(value), "a number");
    }
    hf_want(r, rope->name, "truncate", truncate, !truncate || json_is_true(truncate), "true");
    hf_want(r, rope->name, "factor", factor,
            json_is_number(factor) ||
                (json_is_null(factor) && hf_number(rope->object, "mscale_all_dim", 0) == 0),
            "a number");
    const double length = original_length(r, rope);
    const double by =
        json_is_number(factor) ? json_number_value(factor) : hf_max_positions(r) / length;
    const double fast = hf_number(rope->object, "beta_fast", 0);
    const double slow = hf_number(rope->object, "beta_slow", 0);
    fprintf(r->yaml,
            "  rope_scaling:\n    type: yarn\n    factor: %.17g\n    beta_fast: %.17g\n"
            "    beta_slow: %.17g\n    " ORIGINAL ": %.17g\n",
            by, fast != 0 ? fast : 32, slow != 0 ? slow : 1, length);
    put_mscale(r, rope, by);
}

void hf_put_rope(struct hf_reader *r)
{
    static const char *const common[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor",
                                         NULL};
    static const char *const of_yarn[] = {
        "rope_type", "type",      "rope_theta", "partial_rotary_factor", "factor",
        "beta_fast", "beta_slow", "mscale",     "mscale_all_dim",        "attention_factor",
        "truncate",  ORIGINAL,    NULL};
    const struct rope rope = find_rope(r);
    const json_t *type = json_object_get(rope.object, "rope_type");
    const json_t *old = json_object_get(rope.object, "type");
    put_theta(r, &rope);
    hf_want(r, rope.name, "type", old, !old || !type || json_equal(old, type),
            "what rope_type says");
    if (!type) type = old;
    const char *text = type ? json_string_value(type) : "default";
    const bool is_yarn = text && !strcmp(text, "yarn");
    hf_want(r, rope.name, "rope_type", type, is_yarn || (text && !strcmp(text, "default")),
            "default or yarn");
    for (int outer = 0; outer < 2; outer++) {
        const json_t *part =
            json_object_get(outer ? r->root : rope.object, "partial_rotary_factor");
        hf_want(r, outer ? "" : rope.name, "partial_rotary_factor", part,
                !part || json_is_null(part) || json_number_value(part) == 1, "1");
    }
    list_unused(r, &rope, is_yarn ? of_yarn : common);
    if (is_yarn)
        put_yarn(r, &rope);
    else if (json_object_get(r->root, ORIGINAL))
        hf_list(r->unused, "", ORIGINAL);
}
