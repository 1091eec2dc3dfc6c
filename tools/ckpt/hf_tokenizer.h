/*
 * hf_tokenizer.h - the tokenizer of an export, as transformers' AutoTokenizer reads it:
 * tokenizer.json and tokenizer_config.json. It gives text the ids that the training data have.
 */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

struct hf_tokenizer {
    char *text; /* tokenizer.json; NULL: there is none */
    int64_t bytes;
    json_t *root;   /* the same, parsed */
    int64_t eod_id; /* the well-known name of what ends a document has this id; -1: none has */
};

/*
 * path: a tokenizer.json, as it stands or, max_vocab > 0, without all ids from there on; NULL: that
 * of bytes when it has this fingerprint, else none. A tokenizer with more ids than vocab_size, or
 * with another fingerprint (0: not known), is an error. Free with hf_tokenizer_free.
 */
int hf_tokenizer_try_load(struct hf_tokenizer *t, const char *path, int64_t max_vocab,
                          int64_t vocab_size, uint64_t fingerprint, struct fault *fault);
void hf_tokenizer_free(struct hf_tokenizer *t);

/* The text of tokenizer_config.json: ids of what begins, ends and pads a text, -1: none; the
 * longest text that the model takes. Free with free(). */
char *hf_tokenizer_config(const struct hf_tokenizer *t, int bos_id, int eos_id, int pad_id,
                          int max_length);
