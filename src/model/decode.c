/*
 * decode.c - the forward of generation: one sequence that grows, of whose earlier tokens only the
 * latents of MLA are kept. A call is a micro-batch of one sequence of n tokens, filled up to a
 * multiple of tp: all phases but the attention core are those of evaluation.
 */
#include "base/err.h"
#include "base/place.h"
#include "model/model.h"

void decode_core(struct model *m, const struct layer *l, const struct layer_acts *a)
{
    const struct flow *f = &m->flow;
    const struct latent_cache *c = &m->cache;
    const int width = m->r_kv + m->d_rope;
    const struct cached_shape shape = {.n = f->Na,
                                       .past = c->past,
                                       .H = m->H_l,
                                       .r_kv = m->r_kv,
                                       .d_nope = m->d_nope,
                                       .d_rope = m->d_rope,
                                       .d_v = m->d_v,
                                       .scale = m->softmax_scale};
    void *latent = elem(c->latent, m->dt, (int64_t)l->index * cache_rows(m) * width);
    RUN(m, copy_rows, elem(latent, m->dt, (int64_t)c->past * width), width,
        elem(a->latent_all, m->dt, m->r_q), m->R, m->dt, f->Na, width);
    RUN(m, attention_cached, a->out, a->q, latent, l->attention.kv_b->w, m->dt, &shape);
}

/* Of the last of n tokens, [tp, V_l] on every rank. */
static void head_fwd(struct model *m, int n)
{
    const struct flow *f = &m->flow;
    const struct norm_shape norm = hidden_norm(m);
    const struct linear_shape head = {.N = 1, .in = m->D, .out = m->V_l};
    float *mine = m->cache.logits + first_vocab_row(m);
    void *normed = push(m, f->N * m->D, m->dt);
    float *rstd = push(m, f->N, DTYPE_F32);
    RUN(m, rmsnorm_fwd, normed, rstd, f->h, m->stage_norm[0]->w, m->dt, &norm);
    const void *all = gather_tp(m, &m->stack, normed, f->N * m->D);
    RUN(m, linear_fwd, mine, DTYPE_F32, elem(all, m->dt, (int64_t)(n - 1) * m->D), m->head->w,
        m->dt, &head);
    comm_all_gather(m->comm, AXIS_TP, m->cache.logits, mine, m->V_l, DTYPE_F32);
}

void model_decode(struct model *m, const int32_t *token, int n, int past, float *logits)
{
    struct flow *f = &m->flow;
    const struct flow before = *f;
    const int tp = m->mesh->tp, n_all = (n + tp - 1) / tp * tp;
    CHECK(n > 0 && n_all <= f->Na && past + n <= m->cache.capacity,
          "%d tokens behind %d: a call takes 1 to %lld, the cache %d", n, past, (long long)f->Na,
          m->cache.capacity);
    f->train = false;
    f->doc_start = NULL;
    f->B = 1;
    f->T = n_all;
    f->Na = n_all;
    f->N = n_all / tp;
    m->cache.on = true;
    m->cache.past = past;
    for (int i = 0; i < n_all; i++) m->h_label[i] = i < n ? token[i] : -1;
    RUN(m, copy, f->input[0], m->h_label, (size_t)n_all * sizeof *m->h_label);
    model_main_fwd(m);
    place_at("logits");
    head_fwd(m, n);
    RUN(m, copy, logits, m->cache.logits, (size_t)m->cfg->model.vocab_size * sizeof *logits);
    RUN(m, stream_sync);
    arena_pop(&m->stack, 0);
    m->cache.on = false;
    *f = before;
}
