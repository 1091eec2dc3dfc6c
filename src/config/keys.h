/*
 * keys.h - the table of every key a configuration file may hold. Reading, validation, overrides,
 * printing and the reference page walk this table; no other code knows a key's name, except the
 * consistency rules in rules.c.
 */
#pragma once

#include "config/config.h"

#include <stddef.h>

enum key_type {
    KEY_INT,
    KEY_INT64,
    KEY_NUMBER,
    KEY_BOOL,
    KEY_CHOICE, /* an enum field; choices in the enum's order */
    KEY_TEXT,
    KEY_SOURCES,
    KEY_STAGES, /* the limits apply to each stage's value */
    KEY_RANGES,
    KEY_FIXED, /* a key people copy that has one right value, the preset; no field */
    KEY_SAME   /* an int that, when given, must equal the field; not stored in it */
};

enum key_flag {
    KEY_ABOVE_MIN = 1, /* min itself is outside */
    KEY_BELOW_MAX = 2, /* max itself is outside */
    KEY_NULLABLE = 4,  /* null is min - 1 */
    KEY_WHOLE = 8,     /* stage values are integers */
    KEY_EMPTY = 16     /* the empty text is allowed */
};

struct key {
    const char *name; /* with its sections: model.rope_scaling.factor */
    enum key_type type;
    size_t offset; /* of the field in struct config */
    double min, max;
    int flags;                  /* of enum key_flag */
    const char *const *choices; /* ends with NULL */
    const char *preset;         /* the default as YAML; NULL: required */
    const char *meaning;        /* one line */
};

extern const struct key config_keys[];
extern const int n_config_keys;

/* Row number by full name, or -1. n bytes of name. */
int key_find(const char *name, size_t n);

/* Whether name (n bytes) is a section: the beginning of some key up to a dot. */
bool key_is_section(const char *name, size_t n);

/* A name of another trainer. */
struct foreign {
    const char *name;
    const char *key;    /* of ours, or a section, that stands for it; NULL: there is none */
    const char *remark; /* how it differs, or what there is instead; may be NULL beside a key */
};
extern const struct foreign foreign_names[];
extern const int n_foreign_names;

/*
 * What the writer of the unknown key name probably meant: a sentence ("nearest known key is
 * optimizer.lr", "lr belongs to section optimizer", ...) in buf.
 */
enum { KEY_HINT_BYTES = 256 };
const char *key_hint(const char *name, char buf[KEY_HINT_BYTES]);
