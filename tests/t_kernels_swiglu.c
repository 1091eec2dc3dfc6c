/* SwiGLU forward and backward against double loops, in place, and at the ends of the range. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    int64_t n;
    enum dtype dt;
    bool in_place, with_y;
    const void *gate, *up, *dy;
};

static void run_fwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    backend_cpu.swiglu_fwd(s, out, c->gate, c->up, c->dt, c->n);
}

/* out: dgate, dup, y, n each */
static void run_bwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    const size_t bytes = (size_t)c->n * dtype_bytes(c->dt);
    void *dgate = out, *dup = elem(out, c->dt, c->n), *y = elem(out, c->dt, 2 * c->n);
    if (c->in_place) {
        memcpy(dgate, c->gate, bytes);
        memcpy(dup, c->up, bytes);
        memcpy(y, c->dy, bytes);
    }
    backend_cpu.swiglu_bwd(s, dgate, dup, c->with_y ? y : NULL, c->in_place ? y : c->dy,
                           c->in_place ? dgate : c->gate, c->in_place ? dup : c->up, c->dt, c->n);
}

/* y, dgate, dup by the definition. */
static void naive(const struct args *c, double *y, double *dgate, double *dup)
{
    for (int64_t i = 0; i < c->n; i++) {
        const double g = get(c->gate, c->dt, i), u = get(c->up, c->dt, i);
        const double dy = get(c->dy, c->dt, i), sigmoid = 1 / (1 + exp(-g));
        y[i] = g * sigmoid * u;
        dgate[i] = dy * u * sigmoid * (1 + g * (1 - sigmoid));
        dup[i] = dy * g * sigmoid;
    }
}

static void check(int64_t n, enum dtype dt, double range)
{
    void *gate = new_values(dt, n, "gate", range), *up = new_values(dt, n, "up", 2);
    void *dy = new_values(dt, n, "dy", 1);
    struct args c = {.n = n, .dt = dt, .with_y = true, .gate = gate, .up = up, .dy = dy};
    const size_t bytes = (size_t)n * dtype_bytes(dt);
    double *want_y = new_bytes((size_t)n * sizeof *want_y);
    double *want_dgate = new_bytes((size_t)n * sizeof *want_dgate);
    double *want_dup = new_bytes((size_t)n * sizeof *want_dup);

    naive(&c, want_y, want_dgate, want_dup);
    void *y = run_repeatably("swiglu_fwd", run_fwd, &c, bytes);
    void *grads = run_repeatably("swiglu_bwd", run_bwd, &c, 3 * bytes);
    c.in_place = true;
    void *same = run_repeatably("swiglu_bwd in place", run_bwd, &c, 3 * bytes);
    c.with_y = false;
    void *without = run_repeatably("swiglu_bwd without y", run_bwd, &c, 3 * bytes);

    /* some F32 roundings beside the last one; dgate has gate * (1 - sigmoid), where the difference
     * is good to 2^-24 and the gate is below 17 before it vanishes */
    const double bound = half_ulp(dt) + 1.5e-6;
    const double e_y = max_error(y, dt, want_y, n), e_dgate = max_error(grads, dt, want_dgate, n);
    const double e_dup = max_error(elem(grads, dt, n), dt, want_dup, n);
    EXPECT(e_y < bound && e_dgate < bound && e_dup < bound,
           "n=%ld %s: y %.1e, dgate %.1e, dup %.1e", (long)n, dtype_name(dt), e_y, e_dgate, e_dup);
    EXPECT(memcmp(elem(grads, dt, 2 * n), y, bytes) == 0, "n=%ld: y of the backward", (long)n);
    EXPECT(memcmp(same, grads, 3 * bytes) == 0, "n=%ld: in place gives other bits", (long)n);
    EXPECT(memcmp(without, grads, 2 * bytes) == 0, "n=%ld: without y", (long)n);
    free(gate), free(up), free(dy), free(want_y), free(want_dgate), free(want_dup);
    free(y), free(grads), free(same), free(without);
}

/* Large gates: silu is the gate or nothing, never Inf or NaN. */
static void check_ends(void)
{
    const float gate[] = {88, 100, 1e4f, 3e38f, -88, -100, -1e4f, -3e38f};
    const float one[] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct args c = {.n = 8, .dt = DTYPE_F32, .with_y = true, .gate = gate, .up = one, .dy = one};
    float *y = run_repeatably("swiglu_fwd", run_fwd, &c, sizeof gate);
    float *grads = run_repeatably("swiglu_bwd", run_bwd, &c, 3 * sizeof gate);
    for (int i = 0; i < 8; i++) {
        const float want = gate[i] > 0 ? gate[i] : 0, slope = gate[i] > 0 ? 1 : 0;
        EXPECT(fabsf(y[i] - want) < 1e-30f, "silu(%g) = %g", (double)gate[i], (double)y[i]);
        EXPECT(fabsf(grads[i] - slope) < 1e-30f, "silu'(%g) = %g", (double)gate[i],
               (double)grads[i]);
    }
    free(y), free(grads);
}

int main(void)
{
    static const int64_t lengths[] = {0, 1, 17, 512, 513, 100003};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int t = 0; t < 2; t++) {
            check(lengths[i], float_types[t], 4);
            check(lengths[i], float_types[t], 60);
        }
    check_ends();
    return test_end();
}
