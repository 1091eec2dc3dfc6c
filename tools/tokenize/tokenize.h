/*
 * tokenize.h - the parts of dsv3-tokenize: what is asked of it (options.c), text to shards
 * (write.c), and reading shards back (read.c).
 */
#pragma once

#include "data/tokenizer.h"

struct options {
    const char *out, *heldout, *separator, *json_key;
    const char *tokenizer; /* a tokenizer.json; NULL: bytes */
    const char *eod, *bos; /* texts of added tokens; NULL: by default, none */
    struct data_source as; /* format and ids of documents of the shards to read */
    double fraction;
    int64_t vocab, max_vocab, shard_tokens; /* 0: the tokenizer's; all of it; one shard */
    int level;
    bool force, verify, decode, help, version;
    char **path;
    int n_paths;
};

/* -1 after an error message. */
int options_parse(struct options *o, int argc, char **argv);

/* The tokenizer asked for; fatal when it cannot be read. Free with tokenizer_free. */
struct tokenizer *options_tokenizer(const struct options *o);

/* Each returns the exit code. */
int write_shards(const struct options *o);
int verify_shards(const struct options *o);
int decode_shards(const struct options *o);
