/* order.c - the keyed permutation of an epoch's samples; see order.h. */
#include "data/order.h"

#include "base/err.h"
#include "base/rng.h"

enum { N_ROUNDS = 8, ROUND_SHIFT = 56 }; /* half a value has at most 31 bits */

static uint64_t feistel(uint64_t key, int half_bits, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = x >> half_bits, right = x & mask;

    for (uint64_t round = 0; round < N_ROUNDS; round++) {
        const uint64_t mixed = rng_u64(key, round << ROUND_SHIFT | right) & mask;
        const uint64_t next = left ^ mixed;
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

int64_t order_permute(uint64_t seed, int64_t epoch, int64_t n, int64_t index)
{
    CHECK(n >= 1 && n <= INT64_C(1) << 62, "%ld samples, expected 1 .. 2^62", (long)n);
    CHECK(index >= 0 && index < n && epoch >= 0, "index %ld of %ld in epoch %ld", (long)index,
          (long)n, (long)epoch);
    const uint64_t key = rng_u64(rng_key(seed, "sample order"), (uint64_t)epoch);
    int half_bits = 1;
    while (half_bits < 31 && (INT64_C(1) << (2 * half_bits)) < n) half_bits++;

    uint64_t x = (uint64_t)index;
    do x = feistel(key, half_bits, x);
    while (x >= (uint64_t)n);
    return (int64_t)x;
}
