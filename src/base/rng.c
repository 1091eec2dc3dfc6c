/* rng.c - counter-based random numbers; the formulas stand in rng.h. */
#include "base/rng.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

uint64_t rng_key(uint64_t seed, const char *name)
{
    return rng_mix(seed ^ XXH64(name, strlen(name), 0));
}

void rng_fill_normal(float *x, uint64_t key, uint64_t first, int64_t n, double std)
{
    const double two_pi = 6.283185307179586, unit = 1.0 / 4294967296.0;
    for (int64_t j = 0; j < n;) {
        const uint64_t i = first + (uint64_t)j;
        const uint64_t u = rng_u64(key, i / 2);
        const double r = std * sqrt(-2.0 * log(((double)(u >> 32) + 1.0) * unit));
        const double a = two_pi * ((double)(u & 0xffffffffu) * unit);
        if (i % 2 == 0) x[j++] = (float)(r * cos(a));
        if (j < n && (first + (uint64_t)j) % 2 == 1) x[j++] = (float)(r * sin(a));
    }
}
