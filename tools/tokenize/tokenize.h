/*
 * tokenize.h - the parts of dsv3-tokenize: what is asked of it (options.c), text to shards
 * (write.c) of which some are held out (cut.c), and reading shards back (read.c).
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
    bool any_bytes, skip_bad_lines;
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

/* Where files and documents lie in the bytes of a text; zero it before the first use. */
struct file_text {
    int number;
    int64_t begin, end;
};
struct outline {
    int64_t n_bytes, n_documents;
    int64_t *document_end; /* [n_documents] */
    struct file_text *file;
    int n_files; /* that have text */
};
void outline_add_bytes(struct outline *text, int file, int64_t n);
void outline_end_document(struct outline *text);
void outline_free(struct outline *text);

/* The end of a file that is held out, in bytes of the text. */
struct cut {
    int64_t at, end;
    bool after_line; /* it begins at the first line end at or after that place, perhaps nowhere */
};

/*
 * Cuts the last part of every file, so that of the first files together, however many, the fraction
 * is held out as closely as documents allow. A cut is between two documents where that makes the
 * file's part half as long again or shorter at most, or where the document in question is shorter
 * than all that is held out; what is then too much or too little counts for the next file, so that
 * of many short files some are held out as a whole. Otherwise it is after a line. New memory: a cut
 * for each file of the outline, and one behind the end.
 */
struct cut *outline_cut(const struct outline *text, double fraction);

/* How many of the n bytes at place, before the cut's end, belong before the cut; less than n where
 * the cut is. */
int64_t cut_before(const struct cut *cut, const char *bytes, int64_t n, int64_t place);
