/*
 * rng.h - counter-based random numbers: a value is a pure function of (key, index), so that any
 * rank can make any element of any tensor and every layout starts from the same bits.
 *
 *   mix(x)        splitmix64's finaliser: x ^= x>>30; x *= 0xbf58476d1ce4e5b9; x ^= x>>27;
 *                 x *= 0x94d049bb133111eb; x ^= x>>31
 *   rng_u64(k,i)  mix(mix(k + 0x9e3779b97f4a7c15 * (i+1)) ^ k)
 *   rng_key(s,n)  mix(s ^ XXH64(name, seed 0))
 *   normal(k,i)   Box-Muller in F64 over the pair p = i/2: u = rng_u64(k,p),
 *                 r = sqrt(-2 ln((hi32(u)+1) / 2^32)), a = 2 pi lo32(u) / 2^32,
 *                 even i: r cos a, odd i: r sin a; rounded to F32 after scaling by std
 */
#pragma once

#include <stdint.h>

uint64_t rng_key(uint64_t seed, const char *name);

#define RNG_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Inline, because the hash of all parameters takes these for each element. */
static inline uint64_t rng_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t rng_u64(uint64_t key, uint64_t index)
{
    return rng_mix(rng_mix(key + RNG_STEP * (index + 1)) ^ key);
}

/* x[j] = std * normal(key, first + j), j < n. */
void rng_fill_normal(float *x, uint64_t key, uint64_t first, int64_t n, double std);
