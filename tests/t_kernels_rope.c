/* RoPE against a double rotation of adjacent pairs; positions, strides, and the inverse. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    struct rope_shape shape;
    enum dtype dt;
    int64_t first, n_elements;
    int T;
    bool inverse;
    const void *x;
    const float *table;
};

static void run(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    memcpy(out, c->x, (size_t)c->n_elements * dtype_bytes(c->dt));
    backend_cpu.rope(s, out, c->dt, c->table, c->first, c->T, &c->shape, c->inverse);
}

/* x [n_elements] rotated in place. */
static void naive(const struct args *c, double *x)
{
    const int d_rope = c->shape.d_rope;
    for (int64_t n = 0; n < c->shape.N; n++)
        for (int h = 0; h < c->shape.heads; h++)
            for (int i = 0; i < d_rope / 2; i++) {
                const float *cs = c->table + ((c->first + n) % c->T * d_rope + 2 * i);
                double *pair = x + n * c->shape.row_stride + h * (int64_t)c->shape.head_stride +
                               c->shape.offset + 2 * i;
                const double re = pair[0], im = pair[1], cosine = (double)cs[0];
                const double sine = c->inverse ? -(double)cs[1] : (double)cs[1];
                pair[0] = re * cosine - im * sine;
                pair[1] = re * sine + im * cosine;
            }
}

static float *new_table(int T, int d_rope)
{
    float *table = new_bytes((size_t)(T * d_rope) * sizeof *table);
    for (int t = 0; t < T; t++)
        for (int i = 0; i < d_rope / 2; i++) {
            const double angle = t * pow(1e4, -2.0 * i / d_rope);
            table[t * d_rope + 2 * i] = (float)cos(angle);
            table[t * d_rope + 2 * i + 1] = (float)sin(angle);
        }
    return table;
}

/* Heads of d_nope + d_rope elements, the rope part last; rows padded. Elements outside the rope
 * parts must keep their bits, which want has too. */
static void check(int64_t N, int heads, int d_nope, int d_rope, int64_t first, int T, enum dtype dt)
{
    const int head = d_nope + d_rope;
    struct args c = {.shape = {N, heads, d_rope, heads * head + 3, head, d_nope},
                     .dt = dt,
                     .first = first,
                     .T = T};
    const size_t bytes = (size_t)(N * c.shape.row_stride) * dtype_bytes(dt);
    c.n_elements = N * c.shape.row_stride;
    void *x = new_values(dt, c.n_elements, "x", 2);
    float *table = new_table(T, d_rope);
    double *want = new_doubles(x, dt, c.n_elements);
    c.x = x, c.table = table;

    void *y = run_repeatably("rope", run, &c, bytes);
    naive(&c, want);
    const double error = max_error(y, dt, want, c.n_elements);
    /* two products and a sum in F32, then one rounding; the largest |want| is below 2 sqrt(2) */
    EXPECT(error < half_ulp(dt) + 2e-7, "N=%ld heads=%d d_rope=%d %s: error %.2e", (long)N, heads,
           d_rope, dtype_name(dt), error);
    for (int64_t i = 0; i < c.n_elements; i++) {
        const int64_t in_row = i % c.shape.row_stride;
        const bool kept = in_row >= (int64_t)heads * head || in_row % head < d_nope;
        if (kept) EXPECT(get(y, dt, i) == get(x, dt, i), "element %ld was not to move", (long)i);
    }

    double *back = new_doubles(x, dt, c.n_elements);
    c.x = y, c.inverse = true;
    void *z = run_repeatably("rope inverse", run, &c, bytes);
    const double there_and_back = max_error(z, dt, back, c.n_elements);
    EXPECT(there_and_back < 3 * half_ulp(dt) + 4e-7, "inverse: error %.2e", there_and_back);
    free(x), free(table), free(want), free(y), free(back), free(z);
}

/* A quarter turn takes (1, 0) to (0, 1), and its inverse takes it back: pins the pairs and the
 * sign by hand. */
static void check_quarter_turn(void)
{
    struct stream *s = backend_cpu.stream_create(1);
    const float table[] = {1, 0, 1, 0, 0, 1, 1, 0}; /* position 1: pair 0 turns, pair 1 does not */
    const struct rope_shape shape = {1, 1, 4, 4, 4, 0};
    float x[] = {1, 0, 5, 6};
    backend_cpu.rope(s, x, DTYPE_F32, table, 1, 2, &shape, false);
    EXPECT(x[0] == 0 && x[1] == 1 && x[2] == 5 && x[3] == 6, "(%g %g)", (double)x[0], (double)x[1]);
    backend_cpu.rope(s, x, DTYPE_F32, table, 3, 2, &shape, true);
    EXPECT(x[0] == 1 && x[1] == 0, "back: (%g %g)", (double)x[0], (double)x[1]);
    backend_cpu.stream_destroy(s);
}

int main(void)
{
    static const struct {
        int64_t N;
        int heads, d_nope, d_rope;
        int64_t first;
        int T;
    } shapes[] = {{0, 2, 4, 4, 0, 8},      {1, 1, 0, 2, 0, 1},   {5, 3, 3, 6, 2, 4},
                  {7, 1, 0, 64, 30, 9},    {3, 2, 1, 514, 0, 3}, {129, 4, 32, 16, 100, 256},
                  {300, 8, 16, 64, 7, 128}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < 2; t++)
            check(shapes[i].N, shapes[i].heads, shapes[i].d_nope, shapes[i].d_rope, shapes[i].first,
                  shapes[i].T, float_types[t]);
    check_quarter_turn();
    return test_end();
}
