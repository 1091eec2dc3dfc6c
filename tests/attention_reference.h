/*
 * attention_reference.h - causal attention and its gradient in double, by the plain formulas with a
 * whole row of probabilities at a time. Layouts as in kernels/backend.h, k_pe rows contiguous.
 */
#pragma once
#include "kernels/backend.h"

#include <math.h>
#include <stdlib.h>

struct attention_reference {
    struct attention_shape shape;
    const int32_t *doc_start; /* or NULL */
    double *q, *kv, *k_pe, *dout;
    double *out, *lse;
    double *dq, *dkv, *dk_pe;
    double *prob; /* [T] */
};

static inline int64_t reference_n_q(const struct attention_shape *a)
{
    return a->B * a->T * a->H * (a->d_nope + a->d_rope);
}
static inline int64_t reference_n_kv(const struct attention_shape *a)
{
    return a->B * a->T * a->H * (a->d_nope + a->d_v);
}
static inline int64_t reference_n_pe(const struct attention_shape *a)
{
    return a->B * a->T * a->d_rope;
}
static inline int64_t reference_n_out(const struct attention_shape *a)
{
    return a->B * a->T * a->H * a->d_v;
}

/* Element d of key (row, h): the head's own part, then the shared one; where it lies in values or
 * in gradients. */
static inline double *reference_key(const struct attention_reference *r, double *kv, double *k_pe,
                                    int64_t row, int h, int d)
{
    const struct attention_shape *a = &r->shape;
    return d < a->d_nope ? &kv[(row * a->H + h) * (a->d_nope + a->d_v) + d]
                         : &k_pe[row * a->d_rope + d - a->d_nope];
}

/* The probabilities of one query over keys first .. t of its sequence; returns first. */
static inline int reference_prob(struct attention_reference *r, int64_t b, int t, int h)
{
    const struct attention_shape *a = &r->shape;
    const int d_qk = a->d_nope + a->d_rope, first = r->doc_start ? r->doc_start[b * a->T + t] : 0;
    const int64_t at = (b * a->T + t) * a->H + h;
    double max = -INFINITY, sum = 0.0;
    for (int j = first; j <= t; j++) {
        r->prob[j] = 0.0;
        for (int d = 0; d < d_qk; d++)
            r->prob[j] += a->scale * r->q[at * d_qk + d] *
                          *reference_key(r, r->kv, r->k_pe, b * a->T + j, h, d);
        max = fmax(max, r->prob[j]);
    }
    for (int j = first; j <= t; j++) sum += exp(r->prob[j] - max);
    r->lse[at] = max + log(sum);
    for (int j = first; j <= t; j++) r->prob[j] = exp(r->prob[j] - r->lse[at]);
    return first;
}

static inline double *reference_value(const struct attention_shape *a, double *kv, int64_t row,
                                      int h)
{
    return kv + (row * a->H + h) * (a->d_nope + a->d_v) + a->d_nope;
}

static inline void reference_query(struct attention_reference *r, int64_t b, int t, int h,
                                   bool backward)
{
    const struct attention_shape *a = &r->shape;
    const int d_qk = a->d_nope + a->d_rope, first = reference_prob(r, b, t, h);
    const int64_t at = (b * a->T + t) * a->H + h;
    double *const out = r->out + at * a->d_v, *const dout = r->dout + at * a->d_v, delta = 0.0;
    for (int d = 0; d < a->d_v; d++) {
        out[d] = 0.0;
        for (int j = first; j <= t; j++)
            out[d] += r->prob[j] * reference_value(a, r->kv, b * a->T + j, h)[d];
        delta += out[d] * dout[d];
    }
    for (int j = first; backward && j <= t; j++) {
        const int64_t row = b * a->T + j;
        double dprob = 0.0;
        for (int d = 0; d < a->d_v; d++) {
            dprob += dout[d] * reference_value(a, r->kv, row, h)[d];
            reference_value(a, r->dkv, row, h)[d] += r->prob[j] * dout[d];
        }
        const double dscore = r->prob[j] * (dprob - delta) * a->scale;
        for (int d = 0; d < d_qk; d++) {
            r->dq[at * d_qk + d] += dscore * *reference_key(r, r->kv, r->k_pe, row, h, d);
            *reference_key(r, r->dkv, r->dk_pe, row, h, d) += dscore * r->q[at * d_qk + d];
        }
    }
}

/* Fill out and lse; with backward also add to dq, dkv and dk_pe. Returns sum of dout * out. */
static inline double reference_run(struct attention_reference *r, bool backward)
{
    const struct attention_shape *a = &r->shape;
    for (int64_t b = 0; b < a->B; b++)
        for (int t = 0; t < a->T; t++)
            for (int h = 0; h < a->H; h++) reference_query(r, b, t, h, backward);
    double loss = 0.0;
    for (int64_t i = 0; i < reference_n_out(a); i++) loss += r->dout[i] * r->out[i];
    return loss;
}

static inline void reference_init(struct attention_reference *r, const struct attention_shape *a,
                                  const int32_t *doc_start)
{
    double **const arrays[] = {&r->q,   &r->kv, &r->k_pe, &r->dout,  &r->out,
                               &r->lse, &r->dq, &r->dkv,  &r->dk_pe, &r->prob};
    const int64_t n[] = {reference_n_q(a),   reference_n_kv(a),
                         reference_n_pe(a),  reference_n_out(a),
                         reference_n_out(a), a->B * a->T * a->H,
                         reference_n_q(a),   reference_n_kv(a),
                         reference_n_pe(a),  a->T};
    r->shape = *a;
    r->doc_start = doc_start;
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        *arrays[i] = calloc((size_t)n[i] + 1, sizeof(double));
}

static inline void reference_free(struct attention_reference *r)
{
    double *const arrays[] = {r->q,   r->kv, r->k_pe, r->dout,  r->out,
                              r->lse, r->dq, r->dkv,  r->dk_pe, r->prob};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}
