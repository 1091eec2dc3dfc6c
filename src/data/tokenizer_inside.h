/* tokenizer_inside.h - what a tokenizer consists of, for the two files that fill and use it. */
#pragma once

#include "data/pattern.h"
#include "data/tokenizer.h"
#include "data/unicode_nfc.h"

enum { TOKENIZER_MAX_STEPS = 8 };

struct added_token {
    const char *text; /* NUL-terminated */
    int64_t n;
    uint32_t id;
    bool special, normalized;
};

/* Tokens that are cut out of the text before anything else, in bytewise order of their texts. */
struct added_tokens {
    struct added_token *at;
    int n, n_begins;
    bool begins[256]; /* one of them begins with the byte; n_begins bytes in all */
};

struct token_text {
    const char *at; /* NULL: no such id */
    int64_t n;
};

struct tokenizer {
    bool is_bytes;
    int64_t vocab_size;
    uint64_t hash;
    char *pool; /* [pool_bytes] texts of all tokens */
    int64_t n_pool, pool_bytes;
    struct token_text *token;    /* [vocab_size] */
    struct added_token *special; /* [n_special] in the order of the file */
    int n_special;
    struct added_tokens added[2]; /* cut out first; and then, of what is left: the "normalized" */
    struct unicode_nfc *nfc;      /* the normalizer between the two; NULL: none */
    struct alphabet alphabet;
    int n_steps;
    struct pattern *step; /* [TOKENIZER_MAX_STEPS] each cuts the pieces of the one before */
    struct bpe *bpe;
    uint8_t *class; /* [class_cap] of the text that is encoded */
    int64_t class_cap;

    /* of the text that is encoded */
    int64_t place; /* where the part is that is cut */
    int64_t steps; /* of matching, that are left */
    struct id_list *out;
    struct fault *fault;
};
