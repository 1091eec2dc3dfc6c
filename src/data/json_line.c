/* json_line.c - see json_line.h. */
#include "data/json_line.h"

#include "data/unicode.h"

#include <string.h>

enum { MAX_DEPTH = 1000 };

struct scanner {
    char *begin, *at, *end;
    bool any_bytes;
    struct json_line_error *error;
};

/* A text of the line, unescaped where it stood. */
struct span {
    char *at;
    int64_t n;
    struct json_line_error wrong; /* with what it holds; what NULL: nothing */
};

static int refuse(const struct scanner *s, const char *what)
{
    *s->error = (struct json_line_error){s->at - s->begin + 1, what};
    return -1;
}

static void skip_blanks(struct scanner *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at) s->at++;
}

/* Behind blanks, the character c, which is passed. */
static bool take(struct scanner *s, char c)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

/* The number of four hexadecimal digits at s->at, which moves behind them; -1: there are none. */
static int32_t take_hex(struct scanner *s)
{
    static const char digits[] = "0123456789abcdef";
    int32_t value = 0;

    if (s->end - s->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char c = s->at[i], *digit = strchr(digits, c >= 'A' && c <= 'F' ? c | 32 : c);
        if (!c || !digit) return -1;
        value = value << 4 | (int32_t)(digit - digits);
    }
    s->at += 4;
    return value;
}

/* What follows \u, perhaps as two halves; UNICODE_CODE_POINTS: no character. */
static uint32_t take_code_point(struct scanner *s)
{
    const int32_t high = take_hex(s);

    if (high < 0 || (high >= 0xdc00 && high < 0xe000)) return UNICODE_CODE_POINTS;
    if (high < 0xd800 || high >= 0xe000) return (uint32_t)high;
    if (s->end - s->at < 2 || s->at[0] != '\\' || s->at[1] != 'u') return UNICODE_CODE_POINTS;
    s->at += 2;
    const int32_t low = take_hex(s);
    if (low < 0xdc00 || low >= 0xe000) return UNICODE_CODE_POINTS;
    return 0x10000 + ((uint32_t)(high - 0xd800) << 10 | (uint32_t)(low - 0xdc00));
}

static void note(const struct scanner *s, struct span *span, const char *what)
{
    if (!span->wrong.what) span->wrong = (struct json_line_error){s->at - s->begin + 1, what};
}

/* What follows a backslash: written behind the span, whose text it never reaches. */
static void take_escape(struct scanner *s, struct span *span)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char c = *s->at, *known = c ? strchr(from, c) : NULL;

    if (c != 'u') {
        if (!known) note(s, span, "an escape that JSON has not");
        span->at[span->n++] = known ? to[known - from] : c;
        s->at++;
        return;
    }
    s->at++;
    const uint32_t point = take_code_point(s);
    if (point < UNICODE_CODE_POINTS)
        span->n += unicode_encode(point, span->at + span->n);
    else
        note(s, span, "an escape \\u that is no character");
}

/* One character that is none of \ and ". */
static void take_character(struct scanner *s, struct span *span)
{
    int bytes = 1;
    const unsigned char c = (unsigned char)*s->at;

    if (c < 0x20) note(s, span, "a control character within a text");
    if (c >= 0x80 && unicode_decode(s->at, s->end - s->at, &bytes) == UNICODE_CODE_POINTS &&
        !s->any_bytes)
        note(s, span, "a byte that is not UTF-8");
    memmove(span->at + span->n, s->at, (size_t)bytes);
    span->n += bytes;
    s->at += bytes;
}

/* A text with s->at behind its quote. */
static int take_text(struct scanner *s, struct span *span)
{
    *span = (struct span){.at = s->at};
    for (;;) {
        if (s->at == s->end) return refuse(s, "the line ends within a text");
        if (*s->at == '"') break;
        if (*s->at != '\\') {
            take_character(s, span);
        } else {
            s->at++;
            if (s->at == s->end) return refuse(s, "the line ends within a text");
            take_escape(s, span);
        }
    }
    s->at++;
    return 0;
}

static int skip_value(struct scanner *s, int depth);

/* Values, or keys and values, up to the bracket that closes them. */
static int skip_list(struct scanner *s, char close, int depth)
{
    struct span key;

    if (depth > MAX_DEPTH) return refuse(s, "lists or objects nested deeper than 1000");
    if (take(s, close)) return 0;
    for (;;) {
        if (close == '}') {
            if (!take(s, '"')) return refuse(s, "expected a key in quotes");
            if (take_text(s, &key) != 0) return -1;
            if (!take(s, ':')) return refuse(s, "expected a colon behind a key");
        }
        if (skip_value(s, depth) != 0) return -1;
        if (take(s, close)) return 0;
        if (!take(s, ',')) return refuse(s, "expected a comma or a closing bracket");
    }
}

static int skip_value(struct scanner *s, int depth)
{
    struct span span;

    if (take(s, '"')) return take_text(s, &span);
    if (take(s, '{')) return skip_list(s, '}', depth + 1);
    if (take(s, '[')) return skip_list(s, ']', depth + 1);
    const char *from = s->at; /* a number, true, false, null, NaN: not looked at */
    while (s->at < s->end && *s->at && !strchr(",:]}[{\" \t\r\n", *s->at)) s->at++;
    return s->at > from ? 0 : refuse(s, "expected a value");
}

/* The object's keys and values; what the key's last value is. */
static int scan_object(struct scanner *s, const char *key, struct span *found,
                       struct json_line_error *missing)
{
    struct span name;

    while (true) {
        if (!take(s, '"')) return refuse(s, "expected a key in quotes");
        if (take_text(s, &name) != 0) return -1;
        if (!take(s, ':')) return refuse(s, "expected a colon behind a key");
        const bool here =
            name.n == (int64_t)strlen(key) && memcmp(name.at, key, (size_t)name.n) == 0;
        const bool is_text = here && take(s, '"');
        if (here) *missing = (struct json_line_error){0, is_text ? NULL : "no text at key"};
        if ((is_text ? take_text(s, found) : skip_value(s, 0)) != 0) return -1;
        if (take(s, '}')) return 0;
        if (!take(s, ',')) return refuse(s, "expected a comma or a closing brace");
    }
}

int json_line_try_text(char *line, int64_t n, const char *key, bool any_bytes, const char **text,
                       int64_t *n_text, struct json_line_error *error)
{
    struct scanner s = {line, line, line + n, any_bytes, error};
    struct json_line_error missing = {0, "no key"};
    struct span found = {0};

    if (!take(&s, '{')) return refuse(&s, "expected an object in braces");
    if (!take(&s, '}') && scan_object(&s, key, &found, &missing) != 0) return -1;
    skip_blanks(&s);
    if (s.at < s.end) return refuse(&s, "more behind the object");
    *error = missing.what ? missing : found.wrong;
    if (error->what) return -1;
    *text = found.at;
    *n_text = found.n;
    return 0;
}
