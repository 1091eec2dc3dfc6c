/* text.c - see text.h. */
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *text_grouped(char text[TEXT_NUMBER], int64_t n)
{
    char digits[TEXT_NUMBER];
    const int length = snprintf(digits, sizeof digits, "%" PRId64, n);
    int at = 0;
    for (int i = 0; i < length && at < TEXT_NUMBER - 2; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-') text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

const char *text_s(int64_t n)
{
    return n == 1 ? "" : "s";
}

const char *text_shortest(char text[TEXT_NUMBER], double x)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, TEXT_NUMBER, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    if (x == floor(x) && fabs(x) < 1e9) snprintf(text, TEXT_NUMBER, "%.0f", x);
    return text;
}
