/*
 * range.h - a set of whole numbers from 0 on as ranges, such as the samples that a run passes over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MAX_RANGES = 512 };

struct range {
    int64_t first, end; /* first <= x < end */
};
struct ranges {
    int n;
    struct range at[MAX_RANGES]; /* ascending, with numbers between them */
};

/* Adds first .. end - 1, first < end; ranges that touch become one. False: there are too many. */
bool ranges_add(struct ranges *set, int64_t first, int64_t end);

/* How many of first .. end - 1 are in the set. */
int64_t ranges_count(const struct ranges *set, int64_t first, int64_t end);

/* Of the numbers from `from` on that are not in the set, n are before this one; INT64_MAX when that
 * is beyond 64 bits. n 0: from. */
int64_t ranges_after(const struct ranges *set, int64_t from, int64_t n);
