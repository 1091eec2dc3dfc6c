/* dtype.c - names of element types, and numbers that are not finite. */
#include "base/dtype.h"

#include <stdbool.h>

const char *dtype_name(enum dtype dt)
{
    static const char *const names[] = {"f32", "bf16", "f64", "i32", "i64"};
    return names[dt];
}

/* Neither kind has a number whose exponent is all ones. */
static bool is_nonfinite(const void *x, enum dtype dt, int64_t i)
{
    if (dt == DTYPE_F32) return (((const uint32_t *)x)[i] & 0x7f800000u) == 0x7f800000u;
    return (((const uint16_t *)x)[i] & 0x7f80u) == 0x7f80u;
}

static bool any_nonfinite(const void *x, enum dtype dt, int64_t first, int64_t end)
{
    int any = 0;
    if (dt == DTYPE_F32)
        for (int64_t i = first; i < end; i++) any |= is_nonfinite(x, DTYPE_F32, i);
    else
        for (int64_t i = first; i < end; i++) any |= is_nonfinite(x, DTYPE_BF16, i);
    return any;
}

int64_t dtype_find_nonfinite(const void *x, enum dtype dt, int64_t n)
{
    enum { BLOCK = 4096 }; /* without a branch inside, so that it goes as fast as memory does */
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t end = n - i < BLOCK ? n : i + BLOCK;
        if (!any_nonfinite(x, dt, i, end)) continue;
        while (!is_nonfinite(x, dt, i)) i++;
        return i;
    }
    return n;
}
