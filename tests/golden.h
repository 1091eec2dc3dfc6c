/*
 * golden.h - reads the recorded numbers under tests/golden/ (HDF5 files, made by the script beside
 * them). A missing file or dataset, or one of another type, is fatal: golden data cannot be wrong.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct golden;

/* tests/golden/model/NAME.h5, seen from the repository's root. Free with golden_close. */
struct golden *golden_open(const char *name);
void golden_close(struct golden *g);

bool golden_has(const struct golden *g, const char *name);
int64_t golden_count(const struct golden *g, const char *name); /* elements */

/* All elements of a dataset in row-major order, converted; new memory, free with free(). */
float *golden_f32(const struct golden *g, const char *name);
double *golden_f64(const struct golden *g, const char *name);
int32_t *golden_i32(const struct golden *g, const char *name);
int64_t *golden_i64(const struct golden *g, const char *name);
char *golden_text(const struct golden *g, const char *name); /* NUL-terminated */

double golden_scalar(const struct golden *g, const char *name);

/* max |x - want| / max |want| over n elements; infinite when x or want is not finite, or when all
 * of want is 0 and x is not. */
double golden_error(const float *x, const float *want, int64_t n);
