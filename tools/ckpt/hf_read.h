/*
 * hf_read.h - a config.json while it is read: what hf_config.c (the keys) and hf_rope.c (those of
 * rotary positions) share. Keys mean what transformers' classes take them for, also those that are
 * left out; what cannot be computed here is an error, and what has no effect is noted.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum hf_class {
    HF_V3,     /* deepseek_v3: transformers' DeepseekV3Config */
    HF_V2,     /* deepseek_v2: DeepseekV2Config */
    HF_KIMI_K2 /* kimi_k2: the classes of deepseek_v3, from code beside the weights; its defaults
                  are not known */
};

struct hf_reader {
    json_t *root;
    const char *path;
    enum hf_class class;
    FILE *yaml;                      /* the section model so far */
    FILE *notes, *unused, *left_out; /* lines; names of keys, parted by commas */
    struct err_list *errs;
};

/* "PATH: KEY: found VALUE, expected ..." unless it is right. value NULL: nothing. */
void hf_want(struct hf_reader *r, const char *section, const char *key, const json_t *value,
             bool is_right, const char *expected);

/* A name in a list that begins as "". */
void hf_list(FILE *list, const char *section, const char *key);

/* Writes rope_theta and rope_scaling. */
void hf_put_rope(struct hf_reader *r);

/* The number of that key; of one that is left out, or null, preset. */
double hf_number(const json_t *object, const char *key, double preset);

/* max_position_embeddings, which is the length that yarn extends when the file has no other. */
double hf_max_positions(const struct hf_reader *r);
