/* path.c - see path.h. */
#include "base/path.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

char *path_print(char path[PATH_BYTES], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(path, PATH_BYTES, fmt, args);
    va_end(args);
    CHECK_CODE(CODE_CONFIG, n >= 0 && n < PATH_BYTES,
               "a path of %d bytes, expected at most %d: %.200s...", n, PATH_BYTES - 1, path);
    return path;
}
