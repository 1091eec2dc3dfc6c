/*
 * corpus.h - text files, directories or standard input (input.h) as one stream of bytes with
 * document ends, for the programs that make shards. A document ends with its file, and at each line
 * that equals the separator, which is not part of the text; or each line is a JSON object that
 * holds a document.
 */
#pragma once

#include "data/input.h"

enum corpus_event {
    CORPUS_BYTES,        /* a piece of text */
    CORPUS_DOCUMENT_END, /* perhaps of an empty document */
    CORPUS_END,
    CORPUS_FAULT
};

struct corpus_form {
    const char *separator; /* NULL: none */
    const char *json_key;  /* of the text in each line's object; NULL: plain text */
    bool repeatable;       /* corpus_rewind will be called */
};

struct corpus;

/* paths as in input_try_open; what form points to is borrowed. NULL with fault when something
 * cannot be read. Free with corpus_close. */
struct corpus *corpus_try_open(char *const *paths, int n, const struct corpus_form *form,
                               struct fault *fault);
void corpus_close(struct corpus *corpus);

/* What comes next. CORPUS_BYTES: bytes and n are set, valid until the next call; n > 0. */
enum corpus_event corpus_next(struct corpus *corpus, const char **bytes, int64_t *n,
                              struct fault *fault);
void corpus_rewind(struct corpus *corpus);

/* Where it is read from, for progress and messages. */
const struct input *corpus_input(const struct corpus *corpus);
