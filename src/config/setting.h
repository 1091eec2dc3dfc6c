/*
 * setting.h - the settings of a printed configuration (print.c), perhaps of another version of the
 * program: text, of which no key has to be known. For whoever compares two: compare.c, and
 * dsv3-ckpt diff.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SETTING_DEPTH = 4, SETTING_NAME = 64 }; /* sections within sections; bytes of one's name */

/* Begins as {.rest = text}, and borrows the text. */
struct setting {
    const char *rest;                       /* of the text, behind this setting */
    char key[SETTING_DEPTH * SETTING_NAME]; /* section.key */
    size_t n_section[SETTING_DEPTH];        /* bytes of the key that are sections, by depth */
    const char *value;                      /* [n_value] characters of the text */
    int n_value;
};

/* The next "key: value", with the sections it stands in; false behind the last. Lines that are
 * neither a setting nor a section, or deeper or longer than a key may be, are passed over. */
bool setting_next(struct setting *s);

/* The setting of that key; false: the text has none. */
bool setting_find(struct setting *s, const char *text, const char *key);

bool setting_equal(const struct setting *a, const struct setting *b);
