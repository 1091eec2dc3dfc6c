/*
 * corpus.h - text files, directories or standard input (input.h) as one stream of bytes with
 * document ends, for the programs that make shards. A document ends with its file, and at each line
 * that equals the separator, which is not part of the text, nor is a carriage return behind it; or
 * each line is a JSON object that holds a document (json_line.h).
 *
 * A file is text: with a NUL, or with more than 16 bytes and 1 in 100 that are no UTF-8, it is a
 * fault. Fewer are kept and counted.
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
    bool any_bytes;        /* files are taken as they are, text or not */
    bool skip_bad_lines;   /* of JSON: leaves them out and counts them */
};

/* What was met since the beginning, and where first. */
struct corpus_notes {
    int64_t n_separators;
    int64_t n_bad_bytes, n_bad_lines;
    char bad_byte[1024], bad_line[1024];
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
const struct corpus_notes *corpus_notes(const struct corpus *corpus);

/* Where it is read from, for progress and messages. */
const struct input *corpus_input(const struct corpus *corpus);
