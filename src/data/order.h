/*
 * order.h - the order in which an epoch visits its samples: a keyed permutation of 0 .. n-1 that is
 * computed, not stored. Any rank finds any place of any epoch from (seed, epoch, index) alone, so
 * there is no index file, nothing to agree on, and resuming needs one integer.
 *
 * A balanced Feistel network over the smallest even number of bits that holds n, with rng_u64 as
 * round function; values beyond n are sent through it again until they land below n (cycle walking:
 * at most 4 times on average, as the domain is less than 4 n).
 */
#pragma once

#include <stdint.h>

/* Where index (0 <= index < n) of this epoch goes: a bijection on 0 .. n-1, n >= 1, epoch >= 0. */
int64_t order_permute(uint64_t seed, int64_t epoch, int64_t n, int64_t index);
