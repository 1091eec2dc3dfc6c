/*
 * pattern.h - the regular expressions by which a tokenizer cuts text into pieces. All patterns of a
 * tokenizer share one alphabet: it numbers the classes of characters that none of their sets tells
 * apart, so that matching reads one byte a byte of text and needs no Unicode.
 *
 *     alphabet_init, pattern_try_compile (each pattern), alphabet_finish, pattern_finish (each)
 *     alphabet_classify(text) -> class of each byte; pattern_find on the classes
 *
 * A pattern means what the Oniguruma of PyPI's tokenizers makes of it: alternatives in their order,
 * greedy repetition with backtracking. There is: literals, . [...] [^...] ranges, \p{L} \p{Lu}
 * \P{..} \s \S \d \r \n \t \f \v, ( ), (?: ), (?i: ) around literals and sets of ASCII, (?! ) and
 * (?= ) around one set, * + ? {m} {m,} {m,n} and the possessive *+ ++ ?+ after a set, ? after a
 * group. Everything else is refused by name.
 */
#pragma once

#include "data/shard.h"
#include "data/unicode.h"

enum {
    ALPHABET_MAX_SETS = 64,
    ALPHABET_CLASSES = 256,
    CHAR_SET_MAX_RANGES = 64,
    PATTERN_MAX_NODES = 256,
    PATTERN_MAX_ALTERNATIVES = 32,
    PATTERN_NO_LIMIT = 1 << 30,
    PATTERN_TOO_LONG = -2
};

/* A set of characters. */
struct char_set {
    uint32_t categories; /* bit c: enum unicode_category c */
    int n_ranges;
    bool negated;
    uint32_t range[CHAR_SET_MAX_RANGES][2]; /* first, last */
};

struct alphabet {
    int n_sets;
    struct char_set set[ALPHABET_MAX_SETS];
    uint64_t member[ALPHABET_CLASSES]; /* bit s: the class lies in set s; 0, the class of the bytes
                                          of a character after its first, in all */
    int n_classes;
    uint8_t invalid; /* the class of a byte that is no UTF-8: that of an unassigned character */
    uint8_t *of;     /* [UNICODE_CODE_POINTS] */
};

enum node_kind { NODE_SET, NODE_LOOK, NODE_SPLIT, NODE_JOIN, NODE_END };
struct pattern {
    char *text;
    struct alphabet *alphabet; /* borrowed */
    int n_nodes, n_alternatives;
    int alternative[PATTERN_MAX_ALTERNATIVES]; /* their first nodes */
    uint32_t first[ALPHABET_CLASSES];          /* bit a: alternative a may begin with the class */
    struct node {
        enum node_kind kind;
        int set, min, max; /* SET: how many characters of the set */
        bool possessive;   /* SET: as many as there are, and never fewer */
        bool negated;      /* LOOK: the next character must not be in the set */
        int next, other;   /* SPLIT: next is tried first, then other */
    } node[PATTERN_MAX_NODES];
};

void alphabet_init(struct alphabet *alphabet);
/* After all patterns: numbers the classes. -1: more than 255 of them. */
int alphabet_try_finish(struct alphabet *alphabet, struct fault *fault);
void alphabet_free(struct alphabet *alphabet);

/* Compiles text, NUL-terminated UTF-8. -1 with fault: what is not supported, and where. Free with
 * pattern_free, also then. */
int pattern_try_compile(struct pattern *pattern, struct alphabet *alphabet, const char *text,
                        struct fault *fault);
void pattern_finish(struct pattern *pattern);
void pattern_free(struct pattern *pattern);

/* class [n]: the class of each of the n bytes of text. */
void alphabet_classify(const struct alphabet *alphabet, const char *text, int64_t n,
                       uint8_t *class);

/*
 * The first match within bytes from .. end - 1; from is where a character begins, and the match
 * sees nothing outside. Sets *to and returns where it begins; end if there is none. Never empty.
 * A step is a node tried or a byte passed, and is taken from *steps: backtracking can need very
 * many. PATTERN_TOO_LONG when they do not suffice.
 */
int64_t pattern_find(const struct pattern *pattern, const uint8_t *class, int64_t from, int64_t end,
                     int64_t *to, int64_t *steps);
