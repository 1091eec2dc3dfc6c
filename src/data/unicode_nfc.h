/*
 * unicode_nfc.h - text in Unicode's normalization form C, for tokenizers whose normalizer is NFC
 * (Unicode Standard Annex 15). The tables are those of PyPI's tokenizers, whose normalizers know
 * fewer characters than its regular expressions; tools/unicode_table.py made them.
 */
#pragma once

#include <stdint.h>

struct unicode_nfc;

struct unicode_nfc *unicode_nfc_init(void); /* free with unicode_nfc_free */
void unicode_nfc_free(struct unicode_nfc *nfc);

/*
 * The n bytes of text in form C, and their number in *n: text itself when it has nothing to change,
 * which most has not, otherwise memory of nfc, valid until the next call. Bytes that are no UTF-8
 * are kept where they are, and nothing is composed across them. Linear in n.
 */
const char *unicode_nfc(struct unicode_nfc *nfc, const char *text, int64_t *n);
