/* attention_case.h - one attention problem of the tests: the operands in F32 or BF16, the results
 * of a backend, and the shapes. */
#pragma once
#include "attention_reference.h"
#include "kernel_case.h"

enum documents { ONE_DOCUMENT, RAGGED_DOCUMENTS, TILE_EDGES, SINGLE_TOKENS, N_DOCUMENTS };

struct attention_case {
    struct attention_shape shape;
    enum documents documents;
    enum dtype dt;
    int32_t *doc_start; /* NULL with ONE_DOCUMENT */
    void *q, *kv, *k_pe, *dout;
    void *out, *dq, *dkv, *dk_pe;
    float *lse;
    int64_t n_pe; /* elements of k_pe, gaps included */
};

/* Documents of 1, 2, 3, ... tokens, or beginning one token before each tile of the CPU's kernels
 * (96), or of one token each. */
static inline int32_t *case_documents(const struct attention_shape *a, enum documents documents)
{
    if (documents == ONE_DOCUMENT) return NULL;
    int32_t *const start = mem_alloc((size_t)(a->B * a->T + 1) * sizeof *start, "test");
    for (int64_t b = 0; b < a->B; b++) {
        int begin = 0, length = 1;
        for (int t = 0; t < a->T; t++) {
            if (documents == TILE_EDGES ? t % 96 == 95 : t == begin + length)
                begin = t, length += documents == RAGGED_DOCUMENTS;
            start[b * a->T + t] = begin;
        }
    }
    return start;
}

/* Everything allocated; operands random, results NaN. */
static inline void case_init(struct attention_case *c)
{
    const struct attention_shape *a = &c->shape;
    c->n_pe = a->B * a->T * a->k_pe_stride;
    c->doc_start = case_documents(a, c->documents);
    c->q = case_random(c->dt, reference_n_q(a), 1);
    c->kv = case_random(c->dt, reference_n_kv(a), 2);
    c->k_pe = case_random(c->dt, c->n_pe, 3);
    c->dout = case_random(c->dt, reference_n_out(a), 4);
    c->out = case_copy(c->dout, c->dt, reference_n_out(a));
    c->dq = case_copy(c->q, c->dt, reference_n_q(a));
    c->dkv = case_copy(c->kv, c->dt, reference_n_kv(a));
    c->dk_pe = case_copy(c->k_pe, c->dt, c->n_pe);
    c->lse = case_random(DTYPE_F32, a->B * a->T * a->H, 5);
    memset(c->out, 0xff, (size_t)reference_n_out(a) * dtype_bytes(c->dt));
    memset(c->dq, 0xff, (size_t)reference_n_q(a) * dtype_bytes(c->dt));
    memset(c->dkv, 0xff, (size_t)reference_n_kv(a) * dtype_bytes(c->dt));
    memset(c->dk_pe, 0xff, (size_t)c->n_pe * dtype_bytes(c->dt));
}

static inline void case_free(struct attention_case *c)
{
    void *const arrays[] = {c->doc_start, c->q,  c->kv,  c->k_pe,  c->dout,
                            c->out,       c->dq, c->dkv, c->dk_pe, c->lse};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) mem_free(arrays[i]);
}

static inline void case_run(struct attention_case *c, int threads)
{
    const struct backend *be = &backend_cpu;
    struct stream *s = be->stream_create(threads);
    be->attention_fwd(s, c->out, c->lse, c->q, c->kv, c->k_pe, c->doc_start, c->dt, &c->shape);
    be->attention_bwd(s, c->dq, c->dkv, c->dk_pe, c->dout, c->out, c->lse, c->q, c->kv, c->k_pe,
                      c->doc_start, c->dt, &c->shape);
    be->stream_destroy(s);
}

/* The same operands in double. */
static inline void case_reference(struct attention_reference *r, const struct attention_case *c)
{
    const struct attention_shape *a = &c->shape;
    reference_init(r, a, c->doc_start);
    for (int64_t i = 0; i < reference_n_q(a); i++) r->q[i] = case_get(c->q, c->dt, i);
    for (int64_t i = 0; i < reference_n_kv(a); i++) r->kv[i] = case_get(c->kv, c->dt, i);
    for (int64_t i = 0; i < reference_n_out(a); i++) r->dout[i] = case_get(c->dout, c->dt, i);
    for (int64_t i = 0; i < reference_n_pe(a); i++)
        r->k_pe[i] = case_get(c->k_pe, c->dt, i / a->d_rope * a->k_pe_stride + i % a->d_rope);
}
