/* dtype.c - names of element types. */
#include "base/dtype.h"

const char *dtype_name(enum dtype dt)
{
    static const char *const names[] = {"f32", "bf16", "f64", "i32", "i64"};
    return names[dt];
}
