/* AdamW against the published update in double, several steps, F32 and BF16 moments. */
// TEST ranks=1 timeout=30
#include "kernels.h"

enum { STEPS = 5 };

struct args {
    int64_t n;
    enum dtype m_dt;
    struct adamw_args step[STEPS];
    const float *p, *g; /* g [STEPS, n] */
};

/* out: p [n], then m and v of m_dt, zero at first. */
static void run(struct stream *s, void *out, const void *args)
{
    const struct args *c = args;
    float *p = out;
    void *m = p + c->n, *v = elem(m, c->m_dt, c->n);
    memcpy(p, c->p, (size_t)c->n * sizeof *p);
    memset(m, 0, 2 * (size_t)c->n * dtype_bytes(c->m_dt));
    int32_t bad = 0;
    for (int t = 0; t < STEPS; t++)
        backend_cpu.adamw(s, p, m, v, c->m_dt, c->g + t * c->n, c->n, &c->step[t], &bad);
    EXPECT(!bad, "n=%ld: found a number that is not finite", (long)c->n);
}

static double rounded(double x, enum dtype dt)
{
    return dt == DTYPE_BF16 ? (double)bf16_to_f32(f32_to_bf16((float)x)) : x;
}

static void naive(const struct args *c, double *p, double *m, double *v)
{
    for (int t = 0; t < STEPS; t++) {
        const struct adamw_args *a = &c->step[t];
        const double lr = a->lr, beta1 = a->beta1, beta2 = a->beta2;
        for (int64_t i = 0; i < c->n; i++) {
            const double g = (double)c->g[t * c->n + i] * a->grad_scale;
            const double m_new = beta1 * m[i] + (1 - beta1) * g;
            const double v_new = beta2 * v[i] + (1 - beta2) * g * g;
            p[i] *= 1 - lr * a->weight_decay;
            p[i] -= lr * (m_new / a->correction1) / (sqrt(v_new / a->correction2) + a->eps);
            m[i] = rounded(m_new, c->m_dt);
            v[i] = rounded(v_new, c->m_dt);
        }
    }
}

static void set_steps(struct args *c, double weight_decay)
{
    for (int t = 0; t < STEPS; t++)
        c->step[t] = (struct adamw_args){.lr = 1e-2 / (t + 1),
                                         .beta1 = 0.9,
                                         .beta2 = 0.999,
                                         .eps = 1e-8,
                                         .weight_decay = weight_decay,
                                         .correction1 = 1 - pow(0.9, t + 1),
                                         .correction2 = 1 - pow(0.999, t + 1),
                                         .grad_scale = t == 2 ? 0.25 : 1.0};
}

static void check(int64_t n, enum dtype m_dt, double weight_decay)
{
    float *p0 = new_values(DTYPE_F32, n, "p", 1), *g = new_values(DTYPE_F32, STEPS * n, "g", 1e-3);
    struct args c = {.n = n, .m_dt = m_dt, .p = p0, .g = g};
    double *p = new_doubles(p0, DTYPE_F32, n), *m = new_bytes((size_t)n * sizeof *m);
    double *v = new_bytes((size_t)n * sizeof *v);
    memset(m, 0, (size_t)n * sizeof *m);
    memset(v, 0, (size_t)n * sizeof *v);
    set_steps(&c, weight_decay);

    float *got =
        run_repeatably("adamw", run, &c, (size_t)n * (sizeof *got + 2 * dtype_bytes(m_dt)));
    naive(&c, p, m, v);
    const void *got_m = got + n, *got_v = elem(got_m, m_dt, n);
    const double e_p = max_error(got, DTYPE_F32, p, n);
    const double e_m = max_error(got_m, m_dt, m, n), e_v = max_error(got_v, m_dt, v, n);
    /* Five steps of some F32 roundings. A BF16 moment may fall on the other side of a tie once in
     * some thousand roundings: one unit of 2^-8, and what that moves p, a fraction of lr. */
    const double bound_m = m_dt == DTYPE_BF16 ? 0x1p-7 : 1e-6;
    const double bound_p = m_dt == DTYPE_BF16 ? 1e-4 : 1e-6;
    EXPECT(e_p < bound_p && e_m < bound_m && e_v < bound_m, "n=%ld %s: p %.1e, m %.1e, v %.1e",
           (long)n, dtype_name(m_dt), e_p, e_m, e_v);
    free(p0), free(g), free(p), free(m), free(v), free(got);
}

/* An expert without tokens: zero gradients and zero moments leave nothing but the decay. */
static void check_only_decay(void)
{
    struct stream *s = backend_cpu.stream_create(1);
    struct adamw_args step = {.lr = 0.5,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .eps = 1e-8,
                              .weight_decay = 0.5,
                              .correction1 = 0.1,
                              .correction2 = 0.001,
                              .grad_scale = 1};
    float p[] = {1, -2, 0}, m[3] = {0}, v[3] = {0};
    const float g[3] = {0};
    int32_t bad = 0;
    backend_cpu.adamw(s, p, m, v, DTYPE_F32, g, 3, &step, &bad);
    EXPECT(p[0] == 0.75f && p[1] == -1.5f && p[2] == 0, "%g %g %g", (double)p[0], (double)p[1],
           (double)p[2]);
    EXPECT(m[0] == 0 && v[0] == 0, "moments %g %g", (double)m[0], (double)v[0]);
    step.weight_decay = 0;
    backend_cpu.adamw(s, p, m, v, DTYPE_F32, g, 3, &step, &bad);
    EXPECT(p[0] == 0.75f, "moved to %g", (double)p[0]);
    backend_cpu.stream_destroy(s);
}

/* One of many elements gets a weight, mean or mean square that BF16 has no finite number for. */
static void check_bad(float p0, float m0, float v0, float g0, bool want)
{
    enum { N = 70000, AT = 66600 };
    struct stream *s = backend_cpu.stream_create(2);
    const struct adamw_args step = {.lr = 1,
                                    .beta1 = 0.5,
                                    .beta2 = 0.5,
                                    .eps = 1,
                                    .correction1 = 1,
                                    .correction2 = 1,
                                    .grad_scale = 1};
    static float p[N], m[N], v[N], g[N];
    int32_t bad = 0;
    p[AT] = p0, m[AT] = m0, v[AT] = v0, g[AT] = g0;
    backend_cpu.adamw(s, p, m, v, DTYPE_F32, g, N, &step, &bad);
    EXPECT(bad == want, "%g, moments %g and %g, gradient %g: %d", (double)p0, (double)m0,
           (double)v0, (double)g0, bad);
    p[AT] = m[AT] = v[AT] = g[AT] = 0;
    backend_cpu.stream_destroy(s);
}

int main(void)
{
    static const int64_t lengths[] = {0, 1, 17, 512, 513, 100003};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int t = 0; t < 2; t++) {
            check(lengths[i], float_types[t], 0.1f);
            check(lengths[i], float_types[t], 0);
        }
    check_only_decay();
    check_bad(0x1.fep127f, 0, 0, 0, false);
    check_bad(0x1.ffp127f, 0, 0, 0, true); /* finite in F32 */
    check_bad(0, NAN, 0, 0, true);
    check_bad(0, 0, INFINITY, 0, true); /* the weight does not move */
    check_bad(0, 0, 0, 1e20f, true);    /* its square */
    return test_end();
}
