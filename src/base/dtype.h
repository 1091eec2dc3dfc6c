/* dtype.h - element types of tensors, and conversion between F32 and BF16 (round to nearest even).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum dtype { DTYPE_F32, DTYPE_BF16, DTYPE_F64, DTYPE_I32, DTYPE_I64 };

static inline size_t dtype_bytes(enum dtype dt)
{
    switch (dt) {
    case DTYPE_BF16: return 2;
    case DTYPE_F32:
    case DTYPE_I32: return 4;
    case DTYPE_F64:
    case DTYPE_I64: return 8;
    }
    return 0;
}

const char *dtype_name(enum dtype dt); /* "f32", "bf16", ... */

/* The address of element i of an array of dt; the arithmetic is 64-bit whatever i's type. */
static inline void *elem(const void *base, enum dtype dt, int64_t i)
{
    return (char *)base + i * (int64_t)dtype_bytes(dt);
}

/* The first of n numbers, F32 or BF16, that is infinite or NaN; n: none is. */
int64_t dtype_find_nonfinite(const void *x, enum dtype dt, int64_t n);

typedef uint16_t bf16; /* the one typedef of the project: a bit pattern, not a number */

static inline float bf16_to_f32(bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline bf16 f32_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const uint32_t quiet = bits | 0x00400000u; /* keep a NaN a NaN: the carry could make it Inf */
    /* Compared as floats, half the time; chosen before the shift and not in one expression with it,
     * which GCC would do in 16 bits, a third more. */
    const uint32_t whole = f != f ? quiet : rounded;
    return (bf16)(whole >> 16);
}
