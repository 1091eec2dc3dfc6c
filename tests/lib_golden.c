/*
 * lib_golden.c - golden.h over the serial HDF5 library.
 */
#include "tests/golden.h"

#include "base/err.h"

#include <hdf5.h>
#include <math.h>
#include <stdlib.h>

struct golden {
    hid_t file;
    char path[256];
};

struct golden *golden_open(const char *name)
{
    struct golden *g = calloc(1, sizeof *g);
    CHECK(g, "no memory");
    snprintf(g->path, sizeof g->path, "tests/golden/model/%s.h5", name);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    g->file = H5Fopen(g->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(g->file >= 0, "cannot open %s (tests run in the repository's root)", g->path);
    return g;
}

void golden_close(struct golden *g)
{
    if (!g) return;
    H5Fclose(g->file);
    free(g);
}

bool golden_has(const struct golden *g, const char *name)
{
    return H5Lexists(g->file, name, H5P_DEFAULT) > 0;
}

static hid_t open_dataset(const struct golden *g, const char *name, int64_t *n)
{
    const hid_t set = H5Dopen2(g->file, name, H5P_DEFAULT);
    CHECK(set >= 0, "%s has no dataset %s", g->path, name);
    const hid_t space = H5Dget_space(set);
    *n = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    return set;
}

int64_t golden_count(const struct golden *g, const char *name)
{
    int64_t n;
    H5Dclose(open_dataset(g, name, &n));
    return n;
}

/* n elements of type mem; one zeroed element more, which ends a text. */
static void *read_all(const struct golden *g, const char *name, hid_t mem, H5T_class_t want)
{
    int64_t n;
    const hid_t set = open_dataset(g, name, &n);
    const hid_t type = H5Dget_type(set);
    CHECK(H5Tget_class(type) == want, "%s: %s is of another class of types", g->path, name);
    void *data = calloc((size_t)n + 1, H5Tget_size(mem));
    CHECK(data, "no memory for %s", name);
    if (n > 0)
        CHECK(H5Dread(set, mem, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0, "cannot read %s of %s",
              name, g->path);
    H5Tclose(type);
    H5Dclose(set);
    return data;
}

float *golden_f32(const struct golden *g, const char *name)
{
    return read_all(g, name, H5T_NATIVE_FLOAT, H5T_FLOAT);
}

double *golden_f64(const struct golden *g, const char *name)
{
    return read_all(g, name, H5T_NATIVE_DOUBLE, H5T_FLOAT);
}

int32_t *golden_i32(const struct golden *g, const char *name)
{
    return read_all(g, name, H5T_NATIVE_INT32, H5T_INTEGER);
}

int64_t *golden_i64(const struct golden *g, const char *name)
{
    return read_all(g, name, H5T_NATIVE_INT64, H5T_INTEGER);
}

char *golden_text(const struct golden *g, const char *name)
{
    return read_all(g, name, H5T_NATIVE_CHAR, H5T_INTEGER);
}

double golden_scalar(const struct golden *g, const char *name)
{
    CHECK(golden_count(g, name) == 1, "%s: %s is not one number", g->path, name);
    double *x = golden_f64(g, name);
    const double value = x[0];
    free(x);
    return value;
}

double golden_error(const float *x, const float *want, int64_t n)
{
    double error = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs((double)x[i] - want[i]);
        if (!isfinite(d)) return INFINITY;
        error = fmax(error, d);
        largest = fmax(largest, fabs(want[i]));
    }
    return error == 0 ? 0 : error / largest;
}
