/* decode.c - see decode.h. */
#include "decode.h"

#include <math.h>

float e4m3_to_f32(uint8_t x)
{
    const int exponent = x >> 3 & 15, mantissa = x & 7;
    const float size = (x & 0x7f) == 0x7f ? NAN
                       : exponent         ? ldexpf((float)(8 + mantissa), exponent - 10)
                                          : ldexpf((float)mantissa, -9);
    return x & 0x80 ? -size : size;
}

float f16_to_f32(uint16_t x)
{
    const int exponent = x >> 10 & 31, mantissa = x & 1023;
    const float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                       : exponent     ? ldexpf((float)(1024 + mantissa), exponent - 25)
                                      : ldexpf((float)mantissa, -24);
    return x & 0x8000 ? -size : size;
}

static void decode_e4m3(float *to, const uint8_t *from, int64_t n)
{
    float value[256];
    for (int i = 0; i < 256; i++) value[i] = e4m3_to_f32((uint8_t)i);
    for (int64_t i = 0; i < n; i++) to[i] = value[from[i]];
}

/* Read through memcpy: `from` has the alignment of its bytes in the file only, and the compiler
 * must not think that it is apart from `to`. */
void st_decode(float *to, const void *from, enum st_kind kind, int64_t n)
{
    const char *at = from;
    uint16_t x;
    switch (kind) {
    case ST_F32: memmove(to, from, (size_t)n * sizeof *to); break;
    case ST_E4M3: decode_e4m3(to, from, n); break;
    case ST_BF16:
        for (int64_t i = 0; i < n; i++) {
            memcpy(&x, at + 2 * i, sizeof x);
            to[i] = bf16_to_f32(x);
        }
        break;
    case ST_F16:
        for (int64_t i = 0; i < n; i++) {
            memcpy(&x, at + 2 * i, sizeof x);
            to[i] = f16_to_f32(x);
        }
        break;
    case ST_NO_WEIGHT: break;
    }
}
