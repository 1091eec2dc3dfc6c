/* path.h - paths that are put together: whole, or the program ends. */
#pragma once

enum { PATH_BYTES = 4096 }; /* with its NUL: what the system takes (PATH_MAX) */

/* As snprintf(path, PATH_BYTES, fmt, ...). A path that does not fit is fatal with CODE_CONFIG: one
 * that is cut off names another place. No argument may lie in path. Returns path. */
char *path_print(char path[PATH_BYTES], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
