/* attention_cached against attention over unpacked keys and values, in double: new tokens behind
 * none, one and many, rows that fill the loops and that do not; the same bits with any threads. */
// TEST ranks=1 timeout=30
#include "attention_reference.h"
#include "kernels.h"

/* n, past, H, r_kv, d_nope, d_rope, d_v, scale */
static const struct cached_shape shapes[] = {{0, 3, 2, 8, 4, 2, 4, 0.3f},
                                             {1, 0, 1, 1, 1, 2, 1, 1.0f},
                                             {1, 40, 3, 16, 8, 4, 12, 0.3f},
                                             {7, 0, 2, 35, 12, 6, 7, 0.25f},
                                             {5, 90, 4, 128, 32, 16, 32, 0.1f}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

struct problem {
    struct cached_shape shape;
    enum dtype dt;
    void *q, *latent, *kv_b;
};

static void run(struct stream *s, void *out, const void *args)
{
    const struct problem *p = args;
    backend_cpu.attention_cached(s, out, p->q, p->latent, p->kv_b, p->dt, &p->shape);
}

/* out of the last n of past + n tokens; keys and values are made of the latents first. */
static double *reference(const struct problem *p)
{
    const struct cached_shape *c = &p->shape;
    const int T = (int)(c->past + c->n), d_qk = c->d_nope + c->d_rope, d_kv = c->d_nope + c->d_v;
    const int width = c->r_kv + c->d_rope;
    const struct attention_shape full = {.B = 1,
                                         .T = T,
                                         .H = c->H,
                                         .d_nope = c->d_nope,
                                         .d_rope = c->d_rope,
                                         .d_v = c->d_v,
                                         .scale = c->scale};
    struct attention_reference r;
    reference_init(&r, &full, NULL);
    for (int64_t i = 0; i < c->n * c->H * d_qk; i++)
        r.q[c->past * c->H * d_qk + i] = get(p->q, p->dt, i);
    for (int64_t t = 0; t < T; t++) {
        for (int d = 0; d < c->d_rope; d++)
            r.k_pe[t * c->d_rope + d] = get(p->latent, p->dt, t * width + c->r_kv + d);
        for (int64_t o = 0; o < c->H * d_kv; o++)
            for (int k = 0; k < c->r_kv; k++)
                r.kv[t * c->H * d_kv + o] +=
                    get(p->latent, p->dt, t * width + k) * get(p->kv_b, p->dt, o * c->r_kv + k);
    }
    reference_run(&r, false);
    const size_t n = (size_t)(c->n * c->H * c->d_v);
    double *want = new_bytes(n * sizeof *want);
    memcpy(want, r.out + c->past * c->H * c->d_v, n * sizeof *want);
    reference_free(&r);
    return want;
}

static void check(const struct cached_shape *c, enum dtype dt)
{
    const int d_kv = c->d_nope + c->d_v, d_qk = c->d_nope + c->d_rope;
    struct problem p = {.shape = *c, .dt = dt};
    p.q = new_values(dt, c->n * c->H * d_qk, "q", 1);
    p.latent = new_values(dt, (c->past + c->n) * (c->r_kv + c->d_rope), "latent", 1);
    p.kv_b = new_values(dt, (int64_t)c->H * d_kv * c->r_kv, "kv_b", 1);
    const int64_t n = c->n * c->H * c->d_v;
    void *out = run_repeatably("attention_cached", run, &p, (size_t)n * dtype_bytes(dt));
    double *want = reference(&p);
    /* F32: roundings of 6e-8 in two products and a softmax; BF16: one rounding of the result. */
    const double error = max_error(out, dt, want, n), bound = dt == DTYPE_F32 ? 4e-6 : 0x1p-8;
    EXPECT(error <= bound, "n %ld past %ld r_kv %d %s: %.1e", (long)c->n, (long)c->past, c->r_kv,
           dtype_name(dt), error);
    free(want);
    free(out);
    free(p.kv_b);
    free(p.latent);
    free(p.q);
}

int main(void)
{
    for (int i = 0; i < N_SHAPES; i++) {
        check(&shapes[i], DTYPE_F32);
        check(&shapes[i], DTYPE_BF16);
    }
    return test_end();
}
