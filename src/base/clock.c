/* clock.c - see clock.h. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *clock_utc(char text[CLOCK_TEXT])
{
    struct timespec t;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &t);
    const size_t n = strftime(text, CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", gmtime_r(&t.tv_sec, &utc));
    snprintf(text + n, CLOCK_TEXT - n, ".%03dZ", (int)(t.tv_nsec / 1000000));
    return text;
}
