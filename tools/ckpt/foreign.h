/* foreign.h - files that other programs wrote, opened with care. */
#pragma once

#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

/* DIR/NAME in new memory; free with free(). */
char *foreign_path(const char *dir, const char *name);

/* A regular file for reading, or -1. */
int foreign_try_open(const char *path, int64_t *bytes, struct fault *fault);

/* The JSON object in a file of at most so many bytes, or NULL. Free with json_decref. */
json_t *foreign_try_json(const char *path, int64_t most, struct fault *fault);
