/*
 * vexp.h - exp(x) in F32 as plain arithmetic, so that loops over it vectorise on any machine and
 * give the same bits with any vector width. Within 1.1 ulp; results below the normal range are 0,
 * exp(-Inf) among them, above 88.7228 they are Inf, NaN stays NaN.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The same for x of at most 88, which need not be looked at: that is dear where exponentials are
 * most of the work.
 *
 * x = n ln2 + r with |r| <= ln2 / 2. exp(r) = 1 + r + r^2 p(r), p the polynomial of degree 4 that
 * is nearest there (Remez), within 4e-9 of the result. ln2 is split in two so that n * LN2_HI is
 * exact. 2^n is added to the exponent: the low bits of `shifted` are n. */
static inline float vexp_low(float x)
{
    const float LOG2_E = 0x1.715476p+0f, LN2_HI = 0x1.62e4p-1f, LN2_LO = 0x1.7f7d1cp-20f;
    const float ROUND = 0x1.8p23f; /* adding and subtracting it rounds to an integer */
    const float shifted = x * LOG2_E + ROUND;
    const float n = shifted - ROUND;
    const float r = (x - n * LN2_HI) - n * LN2_LO;
    float p = 0x1.6a235ep-10f;
    p = p * r + 0x1.123a7p-7f;
    p = p * r + 0x1.5558f4p-5f;
    p = p * r + 0x1.55549p-3f;
    p = p * r + 0x1.fffffcp-2f;
    p = p * (r * r) + r;
    float y = p + 1.0f;
    uint32_t bits, n_bits;
    memcpy(&bits, &y, sizeof bits);
    memcpy(&n_bits, &shifted, sizeof n_bits);
    bits += n_bits << 23;
    memcpy(&y, &bits, sizeof y);
    return x < -87.33f ? 0.0f : y;
}

static inline float vexp(float x)
{
    const float y = vexp_low(x);
    return x > 88.7228f ? INFINITY : y;
}
