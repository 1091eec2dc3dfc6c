/*
 * value.h - from a YAML node to a typed field of struct config and back, as a key's row says.
 *
 * Integers may be written 10_000 or 1e6 as long as the value is integral; 010, 0x10 and 4k are
 * refused. Only true and false are booleans. A text keeps what stands there: no, 1e5, on.
 */
#pragma once

#include "config/source.h"

/* Sets the key's field, or adds what is wrong to errs and returns -1. Strings are copied to pool.
 */
int value_try_set(struct config *cfg, const struct key *key, const struct node *node,
                  struct pool *pool, struct err_list *errs);

/* Prints the field as YAML that reads back to the same value. */
void value_print(const struct config *cfg, const struct key *key, FILE *out);

/* What may stand there: "an integer from 1 to 64", "one of sigmoid, softmax", ... */
enum { EXPECTED_BYTES = 160 };
const char *value_expected(const struct key *key, char buf[EXPECTED_BYTES]);

/* Names of enum data_format, in its order; ends with NULL. */
extern const char *const value_formats[];
