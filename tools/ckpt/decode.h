/* decode.h - the number formats of weights as F32, all of them exactly. */
#pragma once

#include "safetensors.h"

/* n values; `from` may lie at the end of the memory of `to`. */
void st_decode(float *to, const void *from, enum st_kind kind, int64_t n);

/* Sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinities, 0x7f and 0xff are NaN. */
float e4m3_to_f32(uint8_t x);
float f16_to_f32(uint16_t x);
