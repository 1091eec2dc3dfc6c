/* value_print.c - fields as YAML text, and what a key accepts in words; see value.h. */
#include "config/value.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* 1e-6 rather than 1e-06. */
static void print_number(double x, FILE *out)
{
    char text[TEXT_NUMBER];
    const char *e = strchr(text_shortest(text, x), 'e');
    if (e)
        fprintf(out, "%.*se%d", (int)(e - text), text, atoi(e + 1));
    else
        fputs(text, out);
}

/* Plain where no YAML reader could take it for something else, otherwise in double quotes. */
static void print_text(const char *text, FILE *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    const bool path = *text && (strchr(letters, *text) || *text == '/') &&
                      strspn(text, more) == strlen(text) && strpbrk(text, "/._");
    if (path) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_paths(const struct data_source *source, FILE *out)
{
    fputc('[', out);
    for (int i = 0; i < source->n_paths; i++) {
        if (i) fputs(", ", out);
        print_text(source->path[i], out);
    }
    fputc(']', out);
}

const char *const value_formats[] = {"auto", "native", "megatron", "llmc", "datatrove",
                                     "npy",  "u16",    "u32",      NULL};

static bool is_plain(const struct data_source *s)
{
    return s->weight == 1 && s->format == DATA_FORMAT_AUTO && s->eod_id < 0 && s->bos_id < 0;
}

static void print_sources(const struct data_sources *sources, FILE *out)
{
    if (sources->n == 1 && is_plain(&sources->at[0])) {
        print_paths(&sources->at[0], out);
        return;
    }
    fputc('[', out);
    for (int i = 0; i < sources->n; i++) {
        const struct data_source *s = &sources->at[i];
        fputs(i ? ", {path: " : "{path: ", out);
        print_paths(s, out);
        fputs(", weight: ", out);
        print_number(s->weight, out);
        if (s->format != DATA_FORMAT_AUTO) fprintf(out, ", format: %s", value_formats[s->format]);
        if (s->eod_id >= 0) fprintf(out, ", eod_id: %d", s->eod_id);
        if (s->bos_id >= 0) fprintf(out, ", bos_id: %d", s->bos_id);
        fputc('}', out);
    }
    fputc(']', out);
}

static void print_stages(const struct stages *stages, FILE *out)
{
    static const char *const shapes[] = {"hold", "linear", "cosine"};
    fputc('[', out);
    for (int i = 0; i < stages->n; i++) {
        fputs(i ? ", {until: " : "{until: ", out);
        print_number(stages->at[i].until, out);
        fputs(", value: ", out);
        print_number(stages->at[i].value, out);
        fprintf(out, ", shape: %s}", shapes[stages->at[i].shape]);
    }
    fputc(']', out);
}

static void print_ranges(const struct ranges *ranges, FILE *out)
{
    fputc('[', out);
    for (int i = 0; i < ranges->n; i++)
        fprintf(out, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "", ranges->at[i].first,
                ranges->at[i].end);
    fputc(']', out);
}

void value_print(const struct config *cfg, const struct key *key, FILE *out)
{
    const void *field = (const char *)cfg + key->offset;
    switch (key->type) {
    case KEY_INT:
        if (key->flags & KEY_NULLABLE && *(const int *)field == (int)key->min - 1)
            fputs("null", out);
        else
            fprintf(out, "%d", *(const int *)field);
        break;
    case KEY_SAME: fprintf(out, "%d", *(const int *)field); break;
    case KEY_INT64: fprintf(out, "%" PRId64, *(const int64_t *)field); break;
    case KEY_NUMBER: print_number(*(const double *)field, out); break;
    case KEY_BOOL: fputs(*(const bool *)field ? "true" : "false", out); break;
    case KEY_CHOICE: fputs(key->choices[*(const int *)field], out); break;
    case KEY_TEXT: print_text(*(const char *const *)field, out); break;
    case KEY_SOURCES: print_sources(field, out); break;
    case KEY_STAGES: print_stages(field, out); break;
    case KEY_RANGES: print_ranges(field, out); break;
    case KEY_FIXED: fputs(key->preset, out); break;
    }
}

static void append(char buf[EXPECTED_BYTES], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void append(char buf[EXPECTED_BYTES], const char *fmt, ...)
{
    const size_t n = strlen(buf);
    va_list args;
    va_start(args, fmt);
    vsnprintf(buf + n, EXPECTED_BYTES - n, fmt, args);
    va_end(args);
}

static void describe_int(const struct key *key, char buf[EXPECTED_BYTES])
{
    append(buf, "%s from %.0f to %.0f",
           key->flags & KEY_NULLABLE ? "null or an integer" : "an integer", key->min, key->max);
}

static void describe_number(const struct key *key, char buf[EXPECTED_BYTES])
{
    append(buf, "a %snumber %s %g", isfinite(key->max) ? "" : "finite ",
           key->flags & KEY_ABOVE_MIN ? "above" : "of at least", key->min);
    if (isfinite(key->max))
        append(buf, " and %s %g", key->flags & KEY_BELOW_MAX ? "below" : "at most", key->max);
}

const char *value_expected(const struct key *key, char buf[EXPECTED_BYTES])
{
    *buf = '\0';
    switch (key->type) {
    case KEY_INT:
    case KEY_INT64: describe_int(key, buf); break;
    case KEY_NUMBER: describe_number(key, buf); break;
    case KEY_BOOL: append(buf, "true or false"); break;
    case KEY_CHOICE:
        for (int i = 0; key->choices[i]; i++)
            append(buf, "%s%s", i ? ", " : "one of ", key->choices[i]);
        break;
    case KEY_TEXT:
        append(buf, "a text without control characters%s",
               key->flags & KEY_EMPTY ? "" : ", not empty");
        break;
    case KEY_SOURCES:
        append(buf, "a path, a list of paths, or a list of {path, weight, format, eod_id, bos_id}");
        break;
    case KEY_STAGES: append(buf, "a list of {until, value, shape}"); break;
    case KEY_RANGES: append(buf, "a list of [first, end]"); break;
    case KEY_FIXED: append(buf, "%s, the only value there is", key->preset); break;
    case KEY_SAME: append(buf, "the value of model.num_attention_heads"); break;
    }
    return buf;
}
