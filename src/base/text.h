/* text.h - numbers as people read them, and how many of a thing. */
#pragma once

#include <stdint.h>

enum { TEXT_NUMBER = 32 }; /* bytes for any number */

/* 671,026,404,352. Returns text. */
const char *text_grouped(char text[TEXT_NUMBER], int64_t n);

/* The ending of a noun: "" behind 1, "s" behind any other number. */
const char *text_s(int64_t n);

/* The shortest decimal that reads back to the same double: 0.1, 1e-06; integers of readable length
 * without exponent. Returns text. */
const char *text_shortest(char text[TEXT_NUMBER], double x);
