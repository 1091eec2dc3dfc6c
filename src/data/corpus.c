/* corpus.c - finding where documents end; see corpus.h. */
#include "data/corpus.h"

#include "data/json_line.h"
#include "data/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LINE_BYTES = 1 << 30, BAD_BYTES = 16, BAD_SHARE = 100 };

struct corpus {
    struct corpus_form form;
    struct input *input;
    const char *buffer; /* what input_try_read gave */
    int64_t at, n;      /* place and bytes in it */

    char *separator; /* and a carriage return, which a line may have behind it */
    int n_separator; /* bytes without that */
    bool in_line;    /* the line read now is no separator, or there is none */
    int matched;     /* otherwise: bytes of it that equal these so far, not yet handed out */

    /* of the file: */
    int64_t n_checked, n_bad;     /* bytes seen, those that are no UTF-8 */
    char tail[UNICODE_MAX_BYTES]; /* what a character may have begun with */
    int n_tail;
    struct corpus_notes notes;

    char *line; /* of JSON, collected */
    int64_t n_line, cap_line, line_number;
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
    corpus->separator = malloc((size_t)corpus->n_separator + 1);
    CHECK(corpus->separator, "no memory for a separator");
    memcpy(corpus->separator, form->separator ? form->separator : "", (size_t)corpus->n_separator);
    corpus->separator[corpus->n_separator] = '\r';
    corpus_rewind(corpus);
    return corpus;
}

void corpus_close(struct corpus *corpus)
{
    if (!corpus) return;
    free(corpus->separator);
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
    corpus->n_checked = corpus->n_bad = corpus->n_tail = 0;
    begin_line(corpus);
}

void corpus_rewind(struct corpus *corpus)
{
    input_rewind(corpus->input);
    memset(&corpus->notes, 0, sizeof corpus->notes);
    begin_file(corpus);
}

const struct corpus_notes *corpus_notes(const struct corpus *corpus)
{
    return &corpus->notes;
}

/* A character of UTF-8 may be cut in two by the end of what is there. */
static bool may_begin(const char *bytes, int64_t n)
{
    const unsigned char first = (unsigned char)bytes[0];
    const int want = first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    for (int64_t i = 1; i < n; i++)
        if ((unsigned char)bytes[i] >> 6 != 2) return false;
    return n < want;
}

static void note_bad_byte(struct corpus *corpus, int64_t at)
{
    corpus->n_bad++;
    if (corpus->notes.n_bad_bytes++ > 0) return;
    snprintf(corpus->notes.bad_byte, sizeof corpus->notes.bad_byte, "%s: byte %ld",
             input_path(corpus->input), (long)at);
}

/* Counts what is no UTF-8 among n bytes, at n_checked of the file; returns how many it looked at:
 * all but a last character that more bytes may end. */
static int64_t check_bytes(struct corpus *corpus, const char *bytes, int64_t n, bool more)
{
    int64_t i = 0;
    while (i < n) {
        int length = 1;
        if ((signed char)bytes[i] < 0 &&
            unicode_decode(bytes + i, n - i, &length) == UNICODE_CODE_POINTS) {
            if (more && may_begin(bytes + i, n - i)) break;
            note_bad_byte(corpus, corpus->n_checked + i);
        }
        i += length;
    }
    corpus->n_checked += i;
    return i;
}

/* The text of a file without its end: with what the part before left, which is a few bytes. */
static int try_check_text(struct corpus *corpus, struct fault *fault)
{
    const char *bytes = corpus->buffer, *nul = memchr(bytes, '\0', (size_t)corpus->n);
    const int64_t begin = corpus->n_checked + corpus->n_tail;
    int64_t n = corpus->n;

    if (nul)
        return fault_set(fault, CODE_DATA,
                         "%s: byte %ld is 0, expected text; --any-bytes takes files as they are",
                         input_path(corpus->input), (long)(begin + (nul - bytes)));
    while (corpus->n_tail > 0 && n > 0) {
        corpus->tail[corpus->n_tail++] = *bytes++;
        n--;
        const int64_t seen = check_bytes(corpus, corpus->tail, corpus->n_tail, true);
        corpus->n_tail -= (int)seen;
        memmove(corpus->tail, corpus->tail + seen, (size_t)corpus->n_tail);
    }
    const int64_t seen = check_bytes(corpus, bytes, n, true);
    if (n > seen) {
        corpus->n_tail = (int)(n - seen);
        memcpy(corpus->tail, bytes + seen, (size_t)corpus->n_tail);
    }
    if (corpus->n_bad <= BAD_BYTES || corpus->n_bad * BAD_SHARE <= corpus->n_checked) return 0;
    return fault_set(
        fault, CODE_DATA,
        "%s: %ld of the first %ld bytes are not UTF-8, expected text; --any-bytes takes "
        "files as they are",
        input_path(corpus->input), (long)corpus->n_bad, (long)corpus->n_checked);
}

/* 1: there is more in the buffer, 0: the file has ended, -1: fault. */
static int refill(struct corpus *corpus, struct fault *fault)
{
    corpus->at = corpus->n = 0;
    const int more = input_try_read(corpus->input, &corpus->buffer, &corpus->n, fault);
    if (corpus->form.any_bytes || corpus->form.json_key || more < 0) return more;
    if (!more) check_bytes(corpus, corpus->tail, corpus->n_tail, false);
    return more && try_check_text(corpus, fault) != 0 ? -1 : more;
}

/* Hands out the start of a line that was held back because it looked like the separator. */
static enum corpus_event give_back(struct corpus *corpus, const char **bytes, int64_t *n)
{
    *bytes = corpus->separator;
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
        if (at == end || *at == corpus->separator[0] || (*at == '\n' && !corpus->n_separator)) {
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
            if (!more && corpus->matched > 0) corpus->notes.n_separators++;
            if (!more) return end_file(corpus);
        }
        if (corpus->in_line) return give_lines(corpus, bytes, n);
        const char next = corpus->buffer[corpus->at];
        if (corpus->matched <= corpus->n_separator && next == corpus->separator[corpus->matched]) {
            corpus->matched++;
            corpus->at++;
        } else if (corpus->matched >= corpus->n_separator && next == '\n') {
            corpus->at++;
            corpus->notes.n_separators++;
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

static int try_parse_line(struct corpus *corpus, const char **bytes, int64_t *n,
                          struct fault *fault)
{
    struct json_line_error error;
    char why[256];

    if (json_line_try_text(corpus->line, corpus->n_line, corpus->form.json_key,
                           corpus->form.any_bytes, bytes, n, &error) == 0)
        return 0;
    if (error.at > 0)
        snprintf(why, sizeof why, "byte %ld: %s", (long)error.at, error.what);
    else
        snprintf(why, sizeof why, "%s \"%.100s\", expected an object with a text there", error.what,
                 corpus->form.json_key);
    return line_fault(corpus, fault, why);
}

static void note_bad_line(struct corpus *corpus, const char *why)
{
    if (corpus->notes.n_bad_lines++ > 0) return;
    snprintf(corpus->notes.bad_line, sizeof corpus->notes.bad_line, "%s", why);
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
        if (try_parse_line(corpus, bytes, n, fault) != 0) {
            if (!corpus->form.skip_bad_lines) return CORPUS_FAULT;
            note_bad_line(corpus, fault->why);
            continue;
        }
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
