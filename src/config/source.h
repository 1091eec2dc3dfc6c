/*
 * source.h - what stands behind struct config: where each value came from, and the memory of its
 * strings. Private to src/config.
 */
#pragma once

#include "config/keys.h"
#include "config/pool.h"
#include "config/tree.h"

enum origin_kind {
    ORIGIN_DEFAULT,
    ORIGIN_FILE,
    ORIGIN_COMMAND_LINE,
    ORIGIN_MISSING, /* required for a run, but this is a model file */
    ORIGIN_BAD      /* not a value of this key, or none where one must be; reported */
};

struct origin {
    enum origin_kind kind;
    struct place at; /* of ORIGIN_FILE and ORIGIN_BAD */
};

struct config_source {
    struct pool pool;
    const char *file;      /* the main file */
    struct origin *origin; /* [n_config_keys] */
    int n_key_value_heads; /* model.num_key_value_heads; 0: not given */
};

/* The consistency of the values with each other: every broken rule is added to errs. Rules about
 * values that are bad or missing are skipped. */
void rules_check(const struct config *cfg, struct err_list *errs);
