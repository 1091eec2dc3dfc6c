/* attention_fwd and attention_bwd against plain formulas in double, with and without documents. */
// TEST ranks=1 timeout=30
#include "attention_case.h"

/* B, T, H, d_nope, d_rope, d_v, k_pe_stride, scale; a tile of the CPU's kernels is 96 tokens. */
static const struct attention_shape shapes[] = {
    {0, 8, 2, 8, 4, 8, 4, 0.3f},          {1, 1, 1, 8, 4, 8, 4, 0.3f},
    {2, 5, 3, 12, 6, 7, 9, 0.2f},         {1, 96, 2, 32, 16, 32, 16, 0.15f},
    {2, 97, 3, 16, 8, 24, 10, 0.2f},      {1, 300, 2, 64, 32, 48, 32, 0.1f},
    {1, 140, 1, 448, 64, 512, 64, 0.05f}, {1, 257, 4, 1, 2, 1, 2, 1.0f},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* Distance of n rows of d elements, stride apart, from want in the L2 norm, relative to it. */
static double distance(const void *got, enum dtype dt, int64_t stride, const double *want,
                       int64_t rows, int d)
{
    double diff = 0.0, size = 0.0;
    for (int64_t i = 0; i < rows * d; i++) {
        const double x = case_get(got, dt, i / d * stride + i % d);
        diff += (x - want[i]) * (x - want[i]);
        size += want[i] * want[i];
    }
    return size > 0.0 ? sqrt(diff / size) : sqrt(diff);
}

/* The gaps between the rows of dk_pe keep what they held. */
static bool gaps_kept(const struct attention_case *c)
{
    const struct attention_shape *a = &c->shape;
    bool kept = true;
    for (int64_t i = 0; i < c->n_pe; i++)
        if (i % a->k_pe_stride >= a->d_rope) kept = kept && isnan(case_get(c->dk_pe, c->dt, i));
    return kept;
}

static void check_values(const struct attention_case *c)
{
    const struct attention_shape *a = &c->shape;
    const int d_qk = a->d_nope + a->d_rope, d_kv = a->d_nope + a->d_v;
    const int64_t rows = a->B * a->T, heads = rows * a->H;
    struct attention_reference r;
    case_reference(&r, c);
    reference_run(&r, true);
    const double e_out = distance(c->out, c->dt, a->d_v, r.out, heads, a->d_v);
    const double e_lse = distance(c->lse, DTYPE_F32, 1, r.lse, heads, 1);
    const double e_q = distance(c->dq, c->dt, d_qk, r.dq, heads, d_qk);
    const double e_kv = distance(c->dkv, c->dt, d_kv, r.dkv, heads, d_kv);
    const double e_pe = distance(c->dk_pe, c->dt, a->k_pe_stride, r.dk_pe, rows, a->d_rope);

    /* F32: a few roundings of 6e-8 per score, and the gradients cancel by dprob - delta. BF16: one
     * rounding of every result (at most 3.9e-3, on average 1.7e-3), and out's enters delta. */
    const double value = c->dt == DTYPE_F32 ? 1e-6 : 2.5e-3;
    const double gradient = c->dt == DTYPE_F32 ? 4e-6 : 1e-2;
    /* Documents of one token: the gradients of q and k are 0 and the absolute error is compared,
     * which is scale * (dprob - delta), two sums of d_v products, or out's rounding in delta. */
    const double noise = c->dt == DTYPE_F32 ? 0x1p-23 * a->d_v : 0x1p-8 * sqrt(a->d_v);
    const double at_zero = noise * (double)a->scale * sqrt((double)(heads * d_qk));
    const double key = c->documents == SINGLE_TOKENS || a->T == 1 ? at_zero : gradient;
    const bool right =
        e_out <= value && e_lse <= 1e-6 && e_q <= key && e_kv <= gradient && e_pe <= key;
    EXPECT(right, "T %d d %d+%d,%d %s documents %d: out %.1e lse %.1e dq %.1e dkv %.1e dk_pe %.1e",
           a->T, a->d_nope, a->d_rope, a->d_v, dtype_name(c->dt), (int)c->documents, e_out, e_lse,
           e_q, e_kv, e_pe);
    EXPECT(gaps_kept(c), "gaps of dk_pe were written");
    reference_free(&r);
}

static bool same_results(const struct attention_case *a, const struct attention_case *b)
{
    const struct attention_shape *s = &a->shape;
    return case_same_bits(a->out, b->out, a->dt, reference_n_out(s)) &&
           case_same_bits(a->lse, b->lse, DTYPE_F32, s->B * s->T * s->H) &&
           case_same_bits(a->dq, b->dq, a->dt, reference_n_q(s)) &&
           case_same_bits(a->dkv, b->dkv, a->dt, reference_n_kv(s)) &&
           case_same_bits(a->dk_pe, b->dk_pe, a->dt, a->n_pe);
}

static void check(const struct attention_shape *shape, enum dtype dt, enum documents documents)
{
    struct attention_case one = {.shape = *shape, .documents = documents, .dt = dt};
    struct attention_case again = one, three = one;
    case_init(&one);
    case_init(&again);
    case_init(&three);
    case_run(&one, 1);
    case_run(&again, 1);
    case_run(&three, 3);
    EXPECT(same_results(&one, &again), "second call differs: T %d %s", shape->T, dtype_name(dt));
    EXPECT(same_results(&one, &three), "three threads differ: T %d %s", shape->T, dtype_name(dt));
    check_values(&one);
    case_free(&one);
    case_free(&again);
    case_free(&three);
}

int main(void)
{
    for (int i = 0; i < N_SHAPES; i++) {
        for (int documents = 0; documents < N_DOCUMENTS; documents++) {
            check(&shapes[i], DTYPE_F32, (enum documents)documents);
            check(&shapes[i], DTYPE_BF16, (enum documents)documents);
        }
    }
    EXPECT(mem_live() == 0, "%ld blocks left", mem_live());
    return test_end();
}
