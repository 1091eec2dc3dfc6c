/*
 * json_line.h - the text at one key of a line that holds a JSON object. Only that text must make
 * sense: of all else the quotes, brackets, colons and commas are followed and nothing is computed,
 * so that a number too large for any type, NaN or a broken escape elsewhere does no harm.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct json_line_error {
    int64_t at; /* byte of the line, from 1; 0: of the whole line */
    const char *what;
};

/*
 * line: n bytes, which are overwritten. Sets *text and *n_text to the text at key, unescaped, which
 * lies in line; the last one if the key comes twice. any_bytes: it may hold bytes that are no
 * UTF-8. -1 with error: no JSON object, no such key, no text there, or one that is no Unicode.
 */
int json_line_try_text(char *line, int64_t n, const char *key, bool any_bytes, const char **text,
                       int64_t *n_text, struct json_line_error *error);
