/*
 * attention.c - time of causal attention, forward, and forward and backward together. FLOP are
 * those of the causal half only: 2 (d_qk + d_v) a pair of tokens forward, 2.5 times that backward.
 * usage: attention [threads]
 */
#include "bench.h"

/* B, T, H, d_nope, d_rope, d_v, k_pe_stride, scale: the small, demo, wide and 671B models' heads.
 */
static const struct attention_shape shapes[] = {
    {1, 1024, 12, 64, 32, 64, 32, 0.1f},
    {4, 256, 4, 32, 16, 32, 16, 0.15f},
    {1, 1024, 4, 128, 64, 128, 64, 0.07f},
    {1, 2048, 2, 128, 64, 128, 64, 0.07f},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

struct job {
    struct bench *b;
    struct attention_shape shape;
    enum dtype dt;
    bool backward;
    void *q, *kv, *k_pe, *dout, *out, *dq, *dkv, *dk_pe;
    float *lse;
};

static void run_attention(void *job)
{
    struct job *j = job;
    const struct backend *be = j->b->be;
    be->attention_fwd(j->b->s, j->out, j->lse, j->q, j->kv, j->k_pe, NULL, j->dt, &j->shape);
    if (j->backward)
        be->attention_bwd(j->b->s, j->dq, j->dkv, j->dk_pe, j->dout, j->out, j->lse, j->q, j->kv,
                          j->k_pe, NULL, j->dt, &j->shape);
}

static double score(const struct job *j, int64_t t, int64_t key)
{
    const struct attention_shape *a = &j->shape;
    const int64_t d_qk = a->d_nope + a->d_rope, d_kv = a->d_nope + a->d_v;
    double sum = 0.0;
    for (int64_t d = 0; d < d_qk; d++)
        sum += bench_get(j->q, j->dt, t * a->H * d_qk + d) *
               (d < a->d_nope ? bench_get(j->kv, j->dt, key * a->H * d_kv + d)
                              : bench_get(j->k_pe, j->dt, key * a->k_pe_stride + d - a->d_nope));
    return sum * (double)a->scale;
}

/* Relative error of head 0 of a few tokens. */
static double forward_error(struct job *j)
{
    const struct attention_shape *a = &j->shape;
    double diff = 0.0, size = 0.0;
    run_attention(j);
    for (int64_t t = 0; t < a->T; t += 101) {
        double total = 0.0, value = 0.0;
        for (int64_t key = 0; key <= t; key++) {
            const double p = exp(score(j, t, key));
            total += p;
            value += p * bench_get(j->kv, j->dt, key * a->H * (a->d_nope + a->d_v) + a->d_nope);
        }
        const double error = bench_get(j->out, j->dt, t * a->H * a->d_v) - value / total;
        diff += error * error;
        size += value / total * (value / total);
    }
    return sqrt(diff / size);
}

static void bench_shape(struct bench *b, const struct attention_shape *a, enum dtype dt)
{
    const int64_t rows = a->B * a->T, heads = rows * a->H, d_qk = a->d_nope + a->d_rope;
    struct job j = {.b = b, .shape = *a, .dt = dt};
    char text[80];
    snprintf(text, sizeof text, "B=%ld T=%d H=%d d_qk=%ld d_v=%d", (long)a->B, a->T, a->H,
             (long)d_qk, a->d_v);
    void **const arrays[] = {&j.q, &j.kv, &j.k_pe, &j.dout, &j.out, &j.dq, &j.dkv, &j.dk_pe};
    const int64_t n[] = {heads * d_qk,
                         heads * (a->d_nope + a->d_v),
                         rows * a->k_pe_stride,
                         heads * a->d_v,
                         heads * a->d_v,
                         heads * d_qk,
                         heads * (a->d_nope + a->d_v),
                         rows * a->k_pe_stride};
    for (int i = 0; i < 8; i++) *arrays[i] = bench_random(b, dt, n[i], (uint64_t)i);
    j.lse = bench_random(b, DTYPE_F32, heads, 9);

    const double error = forward_error(&j);
    const double flop = (double)(d_qk + a->d_v) * a->T * (double)heads; /* 2 x half the pairs */
    if (error > (dt == DTYPE_F32 ? 1e-5 : 1e-2)) { /* F32 rounding; one BF16 rounding */
        bench_wrong("attention", text, dt, error);
    } else {
        const double fwd = bench_time(run_attention, &j);
        bench_row(b, "attention_fwd", text, dt, fwd, flop, "");
        j.backward = true;
        bench_row(b, "attention_fwd+bwd", text, dt, bench_time(run_attention, &j), 3.5 * flop, "");
    }
    for (int i = 0; i < 8; i++) mem_free(*arrays[i]);
    mem_free(j.lse);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_init(&b, argc, argv);
    for (int i = 0; i < N_SHAPES; i++) {
        bench_shape(&b, &shapes[i], DTYPE_F32);
        bench_shape(&b, &shapes[i], DTYPE_BF16);
    }
    bench_free(&b);
    return 0;
}
