/* model.c - builds the layers and walks their phases; see model.h. */
#include "model/model.h"

#include "base/mem.h"
#include "base/place.h"
#include "model/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct phase *const dense_phases[] = {&phase_attention, &phase_mlp};
static const struct phase *const moe_phases[] = {&phase_attention, &phase_route,   &phase_dispatch,
                                                 &phase_shared,    &phase_experts, &phase_combine};

static struct param *find(struct model *m, int layer, const char *name)
{
    char full[sizeof m->embed->name];
    snprintf(full, sizeof full, "model.layers.%d.%s.weight", layer, name);
    return param_find(m->params, full);
}

static void layer_init(struct model *m, int index)
{
    const struct config_model *c = &m->cfg->model;
    struct layer *l = &m->layer[index];
    const bool moe = index >= c->first_k_dense_replace;
    const bool mtp = index >= c->num_hidden_layers;
    *l = (struct layer){.index = index,
                        .moe = moe ? m->n_moe++ : -1,
                        .mtp = mtp ? index - c->num_hidden_layers + 1 : 0,
                        .ffn_norm = find(m, index, "post_attention_layernorm"),
                        .router = find(m, index, "mlp.gate"),
                        .expert_gate = find(m, index, "mlp.experts.gate_proj"),
                        .expert_up = find(m, index, "mlp.experts.up_proj"),
                        .expert_down = find(m, index, "mlp.experts.down_proj"),
                        .enorm = find(m, index, "enorm"),
                        .hnorm = find(m, index, "hnorm"),
                        .eh_proj = find(m, index, "eh_proj")};
    if (mtp) l->phases[l->n_phases++] = &phase_mtp_input;
    const int n = moe ? (int)(sizeof moe_phases / sizeof *moe_phases) : 2;
    for (int i = 0; i < n; i++) l->phases[l->n_phases++] = moe ? moe_phases[i] : dense_phases[i];

    l->mlp.F = moe ? c->moe_intermediate_size * c->n_shared_experts : c->intermediate_size;
    l->mlp.gate = find(m, index, moe ? "mlp.shared_experts.gate_proj" : "mlp.gate_proj");
    l->mlp.up = find(m, index, moe ? "mlp.shared_experts.up_proj" : "mlp.up_proj");
    l->mlp.down = find(m, index, moe ? "mlp.shared_experts.down_proj" : "mlp.down_proj");
    l->attention = (struct attention_params){
        .norm = find(m, index, "input_layernorm"),
        .q_a = find(m, index, "self_attn.q_a_proj"),
        .q_norm = find(m, index, "self_attn.q_a_layernorm"),
        .q_b = find(m, index, c->q_lora_rank ? "self_attn.q_b_proj" : "self_attn.q_proj"),
        .kv_a = find(m, index, "self_attn.kv_a_proj_with_mqa"),
        .kv_norm = find(m, index, "self_attn.kv_a_layernorm"),
        .kv_b = find(m, index, "self_attn.kv_b_proj"),
        .o = find(m, index, "self_attn.o_proj")};
}

static void set_sizes(struct model *m)
{
    const struct config_model *c = &m->cfg->model;
    const int tp = m->mesh->tp;
    m->dt = m->cfg->train.compute_dtype;
    m->D = c->hidden_size;
    m->H_l = c->num_attention_heads / tp;
    m->E = c->n_routed_experts;
    m->E_l = c->n_routed_experts / m->mesh->ep;
    m->K = c->num_experts_per_tok;
    m->F = c->moe_intermediate_size;
    m->V_l = c->vocab_size / tp;
    m->r_q = c->q_lora_rank;
    m->r_kv = c->kv_lora_rank;
    m->d_nope = c->qk_nope_head_dim;
    m->d_rope = c->qk_rope_head_dim;
    m->d_v = c->v_head_dim;
    m->R = m->r_q + m->r_kv + m->d_rope;
    m->softmax_scale = (float)rope_softmax_scale(c);
    m->n_mtp = c->num_nextn_predict_layers;

    struct flow *f = &m->flow;
    f->B = m->cfg->train.micro_batch;
    f->T = m->cfg->data.sequence_length;
    f->Na = (int64_t)f->B * f->T;
    f->N = f->Na / tp;
    m->n_pos = cache_rows(m) > f->T ? cache_rows(m) : f->T;
}

/* Buffers that live as long as the model. */
static void take_state(struct model *m)
{
    struct flow *f = &m->flow;
    struct arena *s = &m->state;
    const size_t ids = (size_t)f->Na * sizeof(int32_t);
    m->rope_table = arena_push(s, (size_t)m->n_pos * (size_t)m->d_rope * sizeof(float));
    m->forced = arena_push(s, (size_t)f->N * (size_t)m->K * sizeof(int32_t));
    m->bias = arena_push(s, (size_t)m->n_moe * (size_t)m->E * sizeof(float));
    m->expert_count = arena_push(s, (size_t)m->n_moe * (size_t)m->E * sizeof(int64_t));
    m->loss_sum = arena_push(s, (size_t)(m->n_mtp + 2) * sizeof(double));
    m->n_bad_loss = arena_push(s, sizeof *m->n_bad_loss);
    f->doc_buffer = arena_push(s, ids);
    for (int k = 0; k <= m->n_mtp; k++) {
        f->label[k] = arena_push(s, ids);
        f->input[k] = arena_push(s, ids);
        f->token_loss[k] = arena_push(s, (size_t)f->N * sizeof(float));
    }
    f->dh = arena_push(s, (size_t)(f->N * m->D) * dtype_bytes(m->dt));
    if (m->cache.capacity == 0) return;
    const int64_t rows = (int64_t)m->cfg->model.num_hidden_layers * cache_rows(m);
    m->cache.latent = arena_push(s, (size_t)(rows * (m->r_kv + m->d_rope)) * dtype_bytes(m->dt));
    m->cache.logits = arena_push(s, (size_t)m->cfg->model.vocab_size * sizeof(float));
}

static void build(struct model *m)
{
    const struct config_model *c = &m->cfg->model;
    set_sizes(m);
    m->n_layers = c->num_hidden_layers + m->n_mtp;
    m->layer = mem_alloc(sizeof *m->layer * (size_t)m->n_layers, "layers");
    m->flow.acts = mem_alloc(sizeof *m->flow.acts * (size_t)m->n_layers, "layer records");
    for (int l = 0; l < m->n_layers; l++) layer_init(m, l);
    m->embed = param_find(m->params, "model.embed_tokens.weight");
    m->head = param_find(m->params, "lm_head.weight");
    m->stage_norm[0] = param_find(m->params, "model.norm.weight");
    for (int k = 1; k <= m->n_mtp; k++)
        m->stage_norm[k] = find(m, c->num_hidden_layers + k - 1, "shared_head.norm");
    take_state(m);
}

static void fill_state(struct model *m)
{
    struct flow *f = &m->flow;
    const int64_t n_table = (int64_t)m->n_pos * m->d_rope;
    float *table = mem_alloc((size_t)n_table * sizeof *table, "rope table");
    rope_fill_table(table, &m->cfg->model, m->n_pos);
    m->be->copy(m->stream, m->rope_table, table, (size_t)n_table * sizeof *table);
    if (m->cfg->debug.balanced_routing) {
        int32_t *forced = mem_alloc((size_t)(f->N * m->K) * sizeof *forced, "forced routing");
        balanced_experts(m, forced);
        m->be->copy(m->stream, m->forced, forced, (size_t)(f->N * m->K) * sizeof *forced);
        m->be->stream_sync(m->stream);
        mem_free(forced);
    } else {
        m->forced = NULL;
    }
    const size_t n_moe_values = (size_t)m->n_moe * (size_t)m->E;
    m->be->zero(m->stream, m->bias, n_moe_values * sizeof(float));
    m->be->zero(m->stream, m->expert_count, n_moe_values * sizeof(int64_t));
    m->be->zero(m->stream, m->loss_sum, (size_t)(m->n_mtp + 2) * sizeof(double));
    m->be->zero(m->stream, m->n_bad_loss, sizeof *m->n_bad_loss);
    m->be->stream_sync(m->stream);
    mem_free(table);
}

void model_init(struct model *m, const struct model_parts *parts, const struct model_memory *memory)
{
    const struct model_memory none = {0}, *bytes = parts->be ? memory : &none;
    memset(m, 0, sizeof *m);
    m->cfg = parts->cfg;
    m->mesh = parts->mesh;
    m->be = parts->be;
    m->stream = parts->stream;
    m->comm = parts->comm;
    m->params = parts->params;
    m->cache.capacity = parts->cache_tokens;
    const bool poison = m->cfg->debug.poison_memory;
    backend_take_arena(m->be, &m->state, "state", bytes->state, poison);
    backend_take_arena(m->be, &m->stack, "activation", bytes->stack, poison);
    backend_take_arena(m->be, &m->scratch, "scratch", bytes->scratch, poison);
    build(m);
    m->h_label = mem_alloc((size_t)m->flow.Na * sizeof *m->h_label, "labels");
    if (m->be)
        fill_state(m);
    else
        exchange_expect(m, parts->worst_routing);
}

void model_free(struct model *m)
{
    if (!m->layer) return;
    mem_free(m->expected.send_rows);
    mem_free(m->expected.recv_rows);
    mem_free(m->h_label);
    mem_free(m->flow.acts);
    mem_free(m->layer);
    if (m->be) {
        m->be->free(m->scratch.base);
        m->be->free(m->stack.base);
        m->be->free(m->state.base);
    }
    memset(m, 0, sizeof *m);
}

/* --- the walk --- */

/* The stage's norm and its loss: stage 0 is the main model, stage k MTP module k. */
static void stage_end_fwd(struct model *m, int k)
{
    struct flow *f = &m->flow;
    struct stage_out *s = &f->stage[k];
    const struct norm_shape norm = hidden_norm(m);
    place_at(k == 0 ? "loss" : "MTP loss");
    s->h = f->h;
    s->n = push(m, f->N * m->D, m->dt);
    s->rstd = push(m, f->N, DTYPE_F32);
    if (f->train) s->dn = push(m, f->N * m->D, m->dt);
    RUN(m, rmsnorm_fwd, s->n, s->rstd, s->h, m->stage_norm[k]->w, m->dt, &norm);
    loss_head(m, f, k);
}

static void layer_fwd(struct model *m, struct layer *l)
{
    struct flow *f = &m->flow;
    f->acts[l->index].mark = arena_mark(&m->stack);
    for (int i = 0; i < l->n_phases; i++) {
        place_in_layer(l->phases[i]->name, "forward", l->index);
        l->phases[i]->fwd(m, l, f);
    }
    if (f->train) return;
    /* Evaluation keeps the hidden state only, in what training uses for its gradient. */
    RUN(m, copy, f->dh, f->h, (size_t)(f->N * m->D) * dtype_bytes(m->dt));
    arena_pop(&m->stack, f->acts[l->index].mark);
    f->h = f->dh;
}

void model_main_fwd(struct model *m)
{
    struct flow *f = &m->flow;
    void *h = push(m, f->N * m->D, m->dt);
    place_in_layer("embedding", "forward", -1);
    embed_fwd(m, h, f->input[0]);
    f->h = h;
    for (int l = 0; l < m->cfg->model.num_hidden_layers; l++) layer_fwd(m, &m->layer[l]);
}

void model_forward(struct model *m, bool train)
{
    struct flow *f = &m->flow;
    const int L = m->cfg->model.num_hidden_layers;
    f->train = train;
    model_main_fwd(m);
    stage_end_fwd(m, 0);
    for (int k = 1; train && k <= m->n_mtp; k++) {
        layer_fwd(m, &m->layer[L + k - 1]);
        stage_end_fwd(m, k);
    }
    if (!train) arena_pop(&m->stack, 0);
}

static void layer_bwd(struct model *m, struct layer *l)
{
    struct flow *f = &m->flow;
    for (int i = l->n_phases - 1; i >= 0; i--) {
        place_in_layer(l->phases[i]->name, "backward", l->index);
        l->phases[i]->bwd(m, l, f);
    }
    arena_pop(&m->stack, f->acts[l->index].mark);
}

void model_backward(struct model *m)
{
    struct flow *f = &m->flow;
    const int L = m->cfg->model.num_hidden_layers;
    const struct norm_shape norm = hidden_norm(m);
    RUN(m, zero, f->dh, (size_t)(f->N * m->D) * dtype_bytes(m->dt));
    for (int k = m->n_mtp; k >= 0; k--) {
        const struct stage_out *s = &f->stage[k];
        place_at("loss");
        RUN(m, rmsnorm_bwd, f->dh, m->stage_norm[k]->grad, s->dn, s->h, s->rstd,
            m->stage_norm[k]->w, m->dt, &norm, true);
        if (k > 0) layer_bwd(m, &m->layer[L + k - 1]);
    }
    for (int l = L - 1; l >= 0; l--) layer_bwd(m, &m->layer[l]);
    place_in_layer("embedding", "backward", -1);
    embed_bwd(m, f->dh, f->input[0]);
    arena_pop(&m->stack, 0);
}

void model_update_router_bias(struct model *m, int64_t *total, double speed)
{
    const int64_t n = (int64_t)m->n_moe * m->E;
    comm_all_reduce(m->comm, AXIS_WORLD, m->expert_count, n, DTYPE_I64, REDUCE_SUM);
    if (config_experts_biased(&m->cfg->model) && speed != 0)
        for (int l = 0; l < m->n_moe; l++)
            RUN(m, bias_update, m->bias + (int64_t)l * m->E, m->expert_count + (int64_t)l * m->E,
                m->E, (float)speed, m->cfg->train.router_bias_centred);
    RUN(m, copy, total, m->expert_count, (size_t)n * sizeof *total);
    RUN(m, zero, m->expert_count, (size_t)n * sizeof *total);
    RUN(m, stream_sync);
}
