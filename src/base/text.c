/* text.c - see text.h. */
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

bool text_try_bytes(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    char *unit;
    const double n = strtod(text, &unit);
    if (*text < '0' || *text > '9' || strpbrk(text, "xXpP")) return false; /* no inf, no 0x10 */
    while (*unit == ' ') unit++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(unit, units[i].name) != 0) continue;
        const double sum = n * units[i].bytes;
        *bytes = sum < 0x1p63 ? (uint64_t)sum : 0;
        return *bytes > 0;
    }
    return false;
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
