/* hf_config.h - config.json of Hugging Face and the section model of ours, both ways. */
#pragma once

#include "config/config.h"

#include <stdbool.h>
#include <stdio.h>

/* What an import needs of config.json besides the model. */
struct hf_settings {
    bool is_fp8;  /* matrices may be F8_E4M3 with a scale for each block */
    int block[2]; /* rows and columns of a block */
    char *notes;  /* lines that the user should see, or NULL; owned */
};

/* The model that a config.json describes, as a configuration with nothing but the section model:
 * what transformers computes with such a file, keys that it leaves out included. What a model of
 * ours cannot be (tied embeddings, biases, another activation, ...) is an error with its key. Free
 * cfg with config_free and set with hf_settings_free, also after a fault. */
int hf_config_try_read(struct config *cfg, struct hf_settings *set, const char *path,
                       struct err_list *errs);
/* "note: " and each of the notes. */
void hf_settings_print(const struct hf_settings *set, FILE *out);
void hf_settings_free(struct hf_settings *set);

/* What begins, ends and fills up a text; -1: none. */
struct hf_ids {
    int bos, eos, pad;
};

/* The config.json of a model. Free with free(). NULL, and a fault, when no class of Hugging Face
 * computes such a model. */
char *hf_config_try_text(const struct config_model *m, bool is_bf16, struct hf_ids ids,
                         struct fault *fault);

/* The section model of a configuration as YAML, and of the text of one, or NULL when it has none;
 * free with free(). */
char *hf_config_yaml(const struct config *cfg);
char *hf_config_section(const char *text);
