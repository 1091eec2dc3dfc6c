/*
 * unicode.h - what the pre-tokenizer's regular expressions (pattern.h) ask of a character: its
 * general category and whether it is white space. The table is Unicode 16.0, as PyPI's tokenizers
 * has it; tools/unicode_table.py made it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNICODE_CODE_POINTS = 0x110000, UNICODE_MAX_BYTES = 4, UNICODE_CATEGORY_BITS = 5 };

/* In the table's order; UNICODE_CN is every code point without a character. */
enum unicode_category {
    UNICODE_CN,
    UNICODE_LU,
    UNICODE_LL,
    UNICODE_LT,
    UNICODE_LM,
    UNICODE_LO,
    UNICODE_MN,
    UNICODE_MC,
    UNICODE_ME,
    UNICODE_ND,
    UNICODE_NL,
    UNICODE_NO,
    UNICODE_PC,
    UNICODE_PD,
    UNICODE_PS,
    UNICODE_PE,
    UNICODE_PI,
    UNICODE_PF,
    UNICODE_PO,
    UNICODE_SM,
    UNICODE_SC,
    UNICODE_SK,
    UNICODE_SO,
    UNICODE_ZS,
    UNICODE_ZL,
    UNICODE_ZP,
    UNICODE_CC,
    UNICODE_CF,
    UNICODE_CO,
    N_UNICODE_CATEGORIES
};

/* Runs of equal category, in order: first code point << UNICODE_CATEGORY_BITS | category. */
extern const uint32_t unicode_runs[];
extern const int n_unicode_runs;

/* Bit c for category c: of a name of n bytes, one letter (L) or two (Lu). 0: there is none. */
uint32_t unicode_categories(const char *name, size_t n);

/* The property White_Space, \s of the regular expressions: n ranges {first, last}. */
extern const uint32_t unicode_spaces[][2];
extern const int n_unicode_spaces;

/* Canonical decompositions, by their characters (unicode_nfc.h): c is first and second, which is 0
 * when it is another character only, and first may be decomposed again. */
struct unicode_pair {
    uint32_t c, first, second;
    bool composes; /* and the two make c */
};
extern const struct unicode_pair unicode_pairs[];
extern const int n_unicode_pairs;

/* Runs of equal combining class, in order: first code point << 8 | class. */
extern const uint32_t unicode_combining[];
extern const int n_unicode_combining;

/*
 * One character of UTF-8 at text, n > 0 bytes long at most: its code point, and in *bytes its
 * length. A byte that begins no valid sequence (overlong forms, surrogates and beyond U+10FFFF are
 * not valid) stands for itself: UNICODE_CODE_POINTS, 1 byte.
 */
uint32_t unicode_decode(const char *text, int64_t n, int *bytes);
/* Writes a code point as UTF-8, at most UNICODE_MAX_BYTES; returns how many. */
int unicode_encode(uint32_t code_point, char *text);
