/*
 * vexp.h - exp(x) in F32 as plain arithmetic, so that loops over it vectorise on any machine and
 * give the same bits with any vector width. Within 1.1 ulp for results in the normal range;
 * -Inf gives 0, above 88.73 gives Inf, NaN stays NaN.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float vexp_power_of_two(uint32_t n)
{
    const uint32_t bits = (n + 127u) << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* x = n ln2 + r with |r| <= ln2 / 2; exp(r) by its Taylor terms up to r^7, whose remainder is below
 * 6e-9 there. ln2 is split in two so that n * LN2_HI is exact. 2^n is applied as two factors, each
 * a normal number, because n may reach 128 above and denormal results below. What comes out for x
 * beyond the limits is replaced at the end: two selections there are cheaper than clamping x. */
static inline float vexp(float x)
{
    const float LOG2_E = 0x1.715476p+0f, LN2_HI = 0x1.62e4p-1f, LN2_LO = 0x1.7f7d1cp-20f;
    const float ROUND = 0x1.8p23f; /* adding and subtracting it rounds to an integer */
    const float shifted = x * LOG2_E + ROUND;
    const float n = shifted - ROUND;
    int32_t n_bits;
    memcpy(&n_bits, &shifted, sizeof n_bits);
    const int32_t whole = (int32_t)((uint32_t)n_bits - 0x4b400000u); /* the bits of ROUND */
    const int32_t half = whole >> 1;
    const float r = (x - n * LN2_HI) - n * LN2_LO;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * (r * r) + r;
    float y = (p + 1.0f) * vexp_power_of_two((uint32_t)half) *
              vexp_power_of_two((uint32_t)whole - (uint32_t)half);
    y = x < -104.0f ? 0.0f : y;
    return x > 88.73f ? INFINITY : y;
}
