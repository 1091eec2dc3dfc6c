/*
 * kernel_case.h - what the tests of the kernels' products and attention share: random operands in
 * either dtype, reading elements as double, and the error that arithmetic in F32 may make.
 */
#pragma once
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/backend.h"
#include "test.h"

#include <math.h>
#include <sys/mman.h>

/* n standard normal numbers, rounded to dt. The same for the same key; free with mem_free. */
static inline void *case_random(enum dtype dt, int64_t n, uint64_t key)
{
    float *const x = mem_alloc((size_t)(n + 1) * sizeof *x, "test");
    rng_fill_normal(x, key, 0, n, 1.0);
    bf16 *const half = (bf16 *)x; /* in place: element i is read before its half is written */
    for (int64_t i = 0; dt == DTYPE_BF16 && i < n; i++) {
        const bf16 y = f32_to_bf16(x[i]);
        memcpy(&half[i], &y, sizeof y);
    }
    return x;
}

/* A copy of n elements of x; free with mem_free. */
static inline void *case_copy(const void *x, enum dtype dt, int64_t n)
{
    void *const y = mem_alloc((size_t)(n + 1) * dtype_bytes(dt), "test");
    memcpy(y, x, (size_t)n * dtype_bytes(dt));
    return y;
}

/* The same, but its end is the end of a page and the next page may not be touched: what reaches
 * beyond the last element ends the process. Free with case_free_guarded. */
static inline void *case_guarded(const void *x, enum dtype dt, int64_t n)
{
    const size_t page = (size_t)getpagesize(), bytes = (size_t)n * dtype_bytes(dt);
    const size_t whole = (bytes + page - 1) / page * page, total = whole + 2 * page;
    char *const base =
        mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED, "no memory for %zu bytes", total);
    *(size_t *)base = total; /* the first page; data begin in the second */
    CHECK(mprotect(base + page + whole, page, PROT_NONE) == 0, "no guard page");
    return memcpy(base + page + whole - bytes, x, bytes);
}

static inline void case_free_guarded(void *x)
{
    const size_t page = (size_t)getpagesize();
    char *const base = (char *)((uintptr_t)x / page * page) - page;
    munmap(base, *(size_t *)base);
}

static inline void *case_random_guarded(enum dtype dt, int64_t n, uint64_t key)
{
    void *const x = case_random(dt, n, key), *const guarded = case_guarded(x, dt, n);
    mem_free(x);
    return guarded;
}

static inline double case_get(const void *x, enum dtype dt, int64_t i)
{
    return dt == DTYPE_BF16 ? bf16_to_f32(((const bf16 *)x)[i]) : ((const float *)x)[i];
}

static inline void case_set(void *x, enum dtype dt, int64_t i, float value)
{
    if (dt == DTYPE_BF16)
        ((bf16 *)x)[i] = f32_to_bf16(value);
    else
        ((float *)x)[i] = value;
}

static inline bool case_same_bits(const void *a, const void *b, enum dtype dt, int64_t n)
{
    return memcmp(a, b, (size_t)n * dtype_bytes(dt)) == 0;
}

/* What a sum of n F32 products may be off by, when the products' sizes add up to size: one rounding
 * of a product, and the roundings of the sums, which grow like a random walk (4 standard
 * deviations); plus the one rounding of a BF16 result. */
static inline double case_tolerance(enum dtype dt, int64_t n, double size, double value)
{
    const double sum = (1.0 + 4.0 * sqrt((double)n)) * 0x1p-24 * size;
    return sum + (dt == DTYPE_BF16 ? (fabs(value) + sum) * 0x1p-8 : fabs(value) * 0x1p-24);
}
