/* reduce.c - see reduce.h. Blocks of a row are gathered in a local array: it cannot alias the rows,
 * so the loops vectorise, and out may be one of them. */
#include "comm/reduce.h"

#include "base/err.h"

enum { BLOCK = 512 };

#define REDUCE_BLOCK(type, combine)                                                                \
    do {                                                                                           \
        type acc[BLOCK];                                                                           \
        memcpy(acc, (const type *)row[0] + at, (size_t)m * sizeof(type));                          \
        for (int r = 1; r < rows; r++) {                                                           \
            const type *x = (const type *)row[r] + at;                                             \
            for (int64_t i = 0; i < m; i++) acc[i] = combine(acc[i], x[i]);                        \
        }                                                                                          \
        memcpy((type *)out + at, acc, (size_t)m * sizeof(type));                                   \
    } while (0)

#define SUM(a, b) ((a) + (b))
#define MAX(a, b) ((b) > (a) ? (b) : (a))
#define MAX_OR_NAN(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))

static void sum_block_bf16(bf16 *out, const void *const *row, int rows, int64_t at, int64_t m)
{
    float acc[BLOCK];
    for (int64_t i = 0; i < m; i++) acc[i] = bf16_to_f32(((const bf16 *)row[0])[at + i]);
    for (int r = 1; r < rows; r++) {
        const bf16 *x = (const bf16 *)row[r] + at;
        for (int64_t i = 0; i < m; i++) acc[i] += bf16_to_f32(x[i]);
    }
    for (int64_t i = 0; i < m; i++) out[at + i] = f32_to_bf16(acc[i]);
}

static void sum_block(void *out, const void *const *row, int rows, int64_t at, int64_t m,
                      enum dtype dt)
{
    switch (dt) {
    case DTYPE_F32: REDUCE_BLOCK(float, SUM); break;
    case DTYPE_BF16: sum_block_bf16(out, row, rows, at, m); break;
    case DTYPE_F64: REDUCE_BLOCK(double, SUM); break;
    case DTYPE_I32: REDUCE_BLOCK(int32_t, SUM); break;
    case DTYPE_I64: REDUCE_BLOCK(int64_t, SUM); break;
    }
}

static void max_block(void *out, const void *const *row, int rows, int64_t at, int64_t m,
                      enum dtype dt)
{
    if (dt == DTYPE_F32)
        REDUCE_BLOCK(float, MAX_OR_NAN);
    else if (dt == DTYPE_I32)
        REDUCE_BLOCK(int32_t, MAX);
    else if (dt == DTYPE_I64)
        REDUCE_BLOCK(int64_t, MAX);
    else
        DIE(CODE_INTERNAL, "no maximum of %s", dtype_name(dt));
}

void reduce_rows(void *out, const void *const *row, int rows, int64_t n, enum dtype dt,
                 enum reduce_op op)
{
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t m = n - at < BLOCK ? n - at : BLOCK;
        if (op == REDUCE_SUM)
            sum_block(out, row, rows, at, m, dt);
        else
            max_block(out, row, rows, at, m, dt);
    }
}
