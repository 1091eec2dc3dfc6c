/* Casts, sums and copies against plain loops; sums over whole arrays and their non-finite values.
 */
// TEST ranks=1 timeout=30
#include "kernels.h"

static const int64_t lengths[] = {0, 1, 17, 512, 513, 100003};

struct args {
    int64_t n;
    enum dtype dt, b_dt;
    const void *a, *b;
};

static void run_cast(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    backend_cpu.cast(s, out, c->b_dt, c->a, c->dt, c->n);
}

static void run_add(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    backend_cpu.add(s, out, c->a, c->dt, c->b, c->b_dt, c->n);
}

static void run_add_in_place(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    memcpy(out, c->a, (size_t)c->n * dtype_bytes(c->dt));
    backend_cpu.add(s, out, out, c->dt, c->b, c->b_dt, c->n);
}

static void run_sums(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    double *sum = out;
    backend_cpu.sum_squares(s, sum, c->a, c->n);
    int64_t n_bad = 4;
    sum[1] = 2.5;
    backend_cpu.sum_add(s, sum + 1, &n_bad, c->a, c->n);
    sum[2] = (double)n_bad;
}

/* Every element exactly: one F32 operation, one rounding. */
static void check_pair(int64_t n, enum dtype dt, enum dtype b_dt)
{
    void *a = new_values(dt, n, "a", 3), *b = new_values(b_dt, n, "b", 3);
    const struct args args = {.n = n, .dt = dt, .b_dt = b_dt, .a = a, .b = b};
    void *cast = run_repeatably("cast", run_cast, &args, (size_t)n * dtype_bytes(b_dt));
    void *sum = run_repeatably("add", run_add, &args, (size_t)n * dtype_bytes(dt));
    void *same = run_repeatably("add", run_add_in_place, &args, (size_t)n * dtype_bytes(dt));
    void *cast_want = new_cast(b_dt, a, dt, n);
    int64_t differ = 0;

    EXPECT(memcmp(cast, cast_want, (size_t)n * dtype_bytes(b_dt)) == 0, "cast %s to %s, n=%ld",
           dtype_name(dt), dtype_name(b_dt), (long)n);
    EXPECT(memcmp(sum, same, (size_t)n * dtype_bytes(dt)) == 0, "in place, n=%ld", (long)n);
    for (int64_t i = 0; i < n; i++) {
        const float want = (float)get(a, dt, i) + (float)get(b, b_dt, i);
        const float rounded = dt == DTYPE_BF16 ? bf16_to_f32(f32_to_bf16(want)) : want;
        differ += (float)get(sum, dt, i) != rounded;
    }
    EXPECT(differ == 0, "add %s + %s, n=%ld: %ld differ", dtype_name(dt), dtype_name(b_dt), (long)n,
           (long)differ);
    free(a), free(b), free(cast), free(sum), free(same), free(cast_want);
}

static void check_sums(int64_t n)
{
    float *x = new_values(DTYPE_F32, n, "x", 2);
    const struct args args = {.n = n, .a = x};
    double *got = run_repeatably("sums", run_sums, &args, 3 * sizeof *got);
    double squares = 0, sum = 2.5;

    for (int64_t i = 0; i < n; i++) {
        squares += (double)x[i] * (double)x[i];
        sum += (double)x[i];
    }
    /* F64 sums of 1e5 terms in another order */
    EXPECT(fabs(got[0] - squares) <= 1e-12 * squares, "squares %.17g, not %.17g", got[0], squares);
    EXPECT(fabs(got[1] - sum) <= 1e-9, "sum %.17g, not %.17g", got[1], sum);
    EXPECT(got[2] == 4, "%g values are not finite, of none and 4 before", got[2]);
    for (int64_t at = 0; at<n; at += n> 1 ? n - 1 : 1) {
        const float bad[] = {NAN, INFINITY, -INFINITY};
        for (int i = 0; i < 3; i++) {
            const float kept = x[at];
            x[at] = bad[i];
            double *sums = run_repeatably("sums", run_sums, &args, 3 * sizeof *sums);
            EXPECT(!isfinite(sums[0]) && !isfinite(sums[1]) && sums[2] == 5,
                   "%g at %ld of %ld is lost", (double)bad[i], (long)at, (long)n);
            free(sums);
            x[at] = kept;
        }
    }
    free(x), free(got);
}

/* Rows at other strides, with the gaps untouched; stride 0 is contiguous. */
static void check_copy_rows(enum dtype dt)
{
    enum { ROWS = 5, COLS = 7, SRC = 11, DST = 9 };
    struct stream *s = backend_cpu.stream_create(1);
    const size_t size = dtype_bytes(dt);
    char *src = new_values(dt, ROWS * SRC, "rows", 1), *dst = new_bytes(ROWS * DST * size);
    char *packed = new_bytes(ROWS * COLS * size), gap[DST * sizeof(float)];

    memset(gap, 0xFF, sizeof gap);
    backend_cpu.copy_rows(s, dst, DST, src, SRC, dt, ROWS, COLS);
    backend_cpu.copy_rows(s, packed, 0, src, SRC, dt, ROWS, COLS);
    for (size_t n = 0; n < ROWS; n++) {
        const char *want = src + n * SRC * size, *got = dst + n * DST * size;
        EXPECT(memcmp(got, want, COLS * size) == 0, "row %zu", n);
        EXPECT(memcmp(got + COLS * size, gap, (DST - COLS) * size) == 0, "gap %zu", n);
        EXPECT(memcmp(packed + n * COLS * size, want, COLS * size) == 0, "packed row %zu", n);
    }
    backend_cpu.copy_rows(s, dst, DST, src, SRC, dt, 0, COLS);
    free(src), free(dst), free(packed);
    backend_cpu.stream_destroy(s);
}

int main(void)
{
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++) check_pair(lengths[i], float_types[a], float_types[b]);
        check_sums(lengths[i]);
    }
    for (int a = 0; a < 2; a++) check_copy_rows(float_types[a]);
    return test_end();
}
