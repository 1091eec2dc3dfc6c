/* text.h - numbers as people read them, and how many of a thing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TEXT_NUMBER = 32 }; /* bytes for any number */

/* 671,026,404,352. Returns text. */
const char *text_grouped(char text[TEXT_NUMBER], int64_t n);

/* The ending of a noun: "" behind 1, "s" behind any other number. */
const char *text_s(int64_t n);

/* "80GiB", "141 GB", "80e9": a number of bytes above 0 with a unit of 1000s or 1024s, or none.
 * False: it is none, also 80G, which some read as the one and some as the other. */
bool text_try_bytes(const char *text, uint64_t *bytes);

/* The shortest decimal that reads back to the same double: 0.1, 1e-06; integers of readable length
 * without exponent. Returns text. */
const char *text_shortest(char text[TEXT_NUMBER], double x);
