/* corpus.c - finding where documents end; see corpus.h. */
#include "data/corpus.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE_BYTES = 1 << 30 };

struct corpus {
    struct corpus_form form;
    struct input *input;
    const char *buffer; /* what input_try_read gave */
    int64_t at, n;      /* place and bytes in it */

    int n_separator;
    bool in_line; /* the line read now is no separator, or there is none */
    int matched;  /* otherwise: bytes of it that equal the separator so far, not yet handed out */

    char *line; /* of JSON, collected */
    int64_t n_line, cap_line, line_number;
    json_t *object;     /* of the line before, which owns the text that was handed out */
    bool after_content; /* its document's end comes next */
};

struct corpus *corpus_try_open(char *const *paths, int n, const struct corpus_form *form,
                               struct fault *fault)
{
    struct input *input = input_try_open(paths, n, form->repeatable, fault);
    if (!input) return NULL;
    struct corpus *corpus = calloc(1, sizeof *corpus);
    CHECK(corpus, "no memory for reading text");

    corpus->input = input;
    corpus->form = *form;
    corpus->n_separator = form->separator ? (int)strlen(form->separator) : 0;
    corpus_rewind(corpus);
    return corpus;
}

void corpus_close(struct corpus *corpus)
{
    if (!corpus) return;
    json_decref(corpus->object);
    free(corpus->line);
    input_close(corpus->input);
    free(corpus);
}

const struct input *corpus_input(const struct corpus *corpus)
{
    return corpus->input;
}

static void begin_line(struct corpus *corpus)
{
    corpus->in_line = corpus->form.separator == NULL;
    corpus->matched = 0;
}

static void begin_file(struct corpus *corpus)
{
    corpus->at = corpus->n = 0;
    corpus->n_line = corpus->line_number = 0;
    begin_line(corpus);
}

void corpus_rewind(struct corpus *corpus)
{
    input_rewind(corpus->input);
    begin_file(corpus);
}

/* 1: there is more in the buffer, 0: the file has ended, -1: fault. */
static int refill(struct corpus *corpus, struct fault *fault)
{
    corpus->at = corpus->n = 0;
    return input_try_read(corpus->input, &corpus->buffer, &corpus->n, fault);
}

/* Hands out the start of a line that was held back because it looked like the separator. */
static enum corpus_event give_back(struct corpus *corpus, const char **bytes, int64_t *n)
{
    *bytes = corpus->form.separator;
    *n = corpus->matched;
    corpus->in_line = true;
    corpus->matched = 0;
    return CORPUS_BYTES;
}

/* The rest of the line, and all lines after it in the buffer that cannot be the separator. */
static enum corpus_event give_lines(struct corpus *corpus, const char **bytes, int64_t *n)
{
    const char *begin = corpus->buffer + corpus->at, *end = corpus->buffer + corpus->n, *at = begin;

    while (corpus->form.separator && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) break;
        at = newline + 1;
        if (at == end || *at == (corpus->n_separator ? corpus->form.separator[0] : '\n')) {
            begin_line(corpus);
            end = at;
        }
    }
    corpus->at = end - corpus->buffer;
    *bytes = begin;
    *n = end - begin;
    return CORPUS_BYTES;
}

static enum corpus_event end_file(struct corpus *corpus)
{
    input_next_file(corpus->input);
    begin_file(corpus);
    return CORPUS_DOCUMENT_END;
}

static enum corpus_event next_plain(struct corpus *corpus, const char **bytes, int64_t *n,
                                    struct fault *fault)
{
    while (input_path(corpus->input)) {
        if (corpus->at == corpus->n) {
            const int more = refill(corpus, fault);
            if (more < 0) return CORPUS_FAULT;
            /* A last line without newline is the separator only when all of it is there. */
            if (!more && corpus->matched > 0 && corpus->matched < corpus->n_separator)
                return give_back(corpus, bytes, n);
            if (!more) return end_file(corpus);
        }
        if (corpus->in_line) return give_lines(corpus, bytes, n);
        const char next = corpus->buffer[corpus->at];
        if (corpus->matched < corpus->n_separator &&
            next == corpus->form.separator[corpus->matched]) {
            corpus->matched++;
            corpus->at++;
        } else if (corpus->matched == corpus->n_separator && next == '\n') {
            corpus->at++;
            begin_line(corpus);
            return CORPUS_DOCUMENT_END;
        } else if (corpus->matched > 0) {
            return give_back(corpus, bytes, n);
        } else {
            corpus->in_line = true;
        }
    }
    return CORPUS_END;
}

static int line_fault(const struct corpus *corpus, struct fault *fault, const char *what)
{
    return fault_set(fault, CODE_DATA, "%s:%ld: %s", input_path(corpus->input),
                     (long)corpus->line_number, what);
}

static int add_to_line(struct corpus *corpus, const char *bytes, int64_t n, struct fault *fault)
{
    if (corpus->n_line + n > MAX_LINE_BYTES)
        return line_fault(corpus, fault, "a line of more than 1 GiB, expected a JSON object");
    if (corpus->n_line + n > corpus->cap_line) {
        corpus->cap_line = 2 * (corpus->n_line + n);
        corpus->line = realloc(corpus->line, (size_t)corpus->cap_line);
        CHECK(corpus->line, "no memory for a line of %ld bytes", (long)corpus->cap_line);
    }
    memcpy(corpus->line + corpus->n_line, bytes, (size_t)n);
    corpus->n_line += n;
    return 0;
}

/* Collects a line without its end. 1: there is one, 0: the file has ended, -1: fault. */
static int try_collect_line(struct corpus *corpus, struct fault *fault)
{
    corpus->n_line = 0;
    corpus->line_number++;
    for (;;) {
        const int more = corpus->at < corpus->n ? 1 : refill(corpus, fault);
        if (more <= 0) return more < 0 ? -1 : corpus->n_line > 0;
        const char *begin = corpus->buffer + corpus->at;
        const char *newline = memchr(begin, '\n', (size_t)(corpus->n - corpus->at));
        const int64_t n = newline ? newline - begin : corpus->n - corpus->at;
        if (add_to_line(corpus, begin, n, fault) != 0) return -1;
        corpus->at += n + (newline != NULL);
        if (newline) return 1;
    }
}

/* The text of the line's object, which stays until the next. */
static int try_parse_line(struct corpus *corpus, const char **bytes, int64_t *n,
                          struct fault *fault)
{
    json_error_t error;
    char why[256];

    json_decref(corpus->object);
    corpus->object = json_loadb(corpus->line, (size_t)corpus->n_line, JSON_ALLOW_NUL, &error);
    if (!corpus->object) {
        snprintf(why, sizeof why, "byte %d: %s", error.position, error.text);
        return line_fault(corpus, fault, why);
    }
    const json_t *content = json_object_get(corpus->object, corpus->form.json_key);
    if (!json_is_string(content)) {
        snprintf(why, sizeof why, "%s \"%.100s\", expected an object with this key",
                 content ? "no text at key" : "no key", corpus->form.json_key);
        return line_fault(corpus, fault, why);
    }
    *bytes = json_string_value(content);
    *n = (int64_t)json_string_length(content);
    return 0;
}

static bool is_blank(const char *line, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!strchr(" \t\r", line[i]) || line[i] == '\0') return false;
    return true;
}

static enum corpus_event next_json(struct corpus *corpus, const char **bytes, int64_t *n,
                                   struct fault *fault)
{
    if (corpus->after_content) {
        corpus->after_content = false;
        return CORPUS_DOCUMENT_END;
    }
    while (input_path(corpus->input)) {
        const int more = try_collect_line(corpus, fault);
        if (more < 0) return CORPUS_FAULT;
        if (!more) {
            end_file(corpus);
            continue;
        }
        if (is_blank(corpus->line, corpus->n_line)) continue;
        if (try_parse_line(corpus, bytes, n, fault) != 0) return CORPUS_FAULT;
        if (*n == 0) return CORPUS_DOCUMENT_END;
        corpus->after_content = true;
        return CORPUS_BYTES;
    }
    return CORPUS_END;
}

enum corpus_event corpus_next(struct corpus *corpus, const char **bytes, int64_t *n,
                              struct fault *fault)
{
    return corpus->form.json_key ? next_json(corpus, bytes, n, fault)
                                 : next_plain(corpus, bytes, n, fault);
}
