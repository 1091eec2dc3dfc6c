/*
 * profile_record.h - what the two halves of the profile share: profile.c counts, profile_print.c
 * makes tables of it.
 */
#pragma once

#include "kernels/profile.h"

/* All calls of one operation in one phase on one shape. */
struct profile_entry {
    const char *phase, *op;
    enum dtype dt; /* of products: which peak bounds them */
    int in, out;   /* of products; else 0 */
    int64_t calls;
    double seconds, flop, bytes;
};

enum { PROFILE_ENTRIES = 512 };
struct profile_record {
    struct profile_entry entry[PROFILE_ENTRIES];
    int n_entries;
    int64_t n_steps;
    struct profile_step sum;
};

const struct profile_record *profile_get_record(void);
