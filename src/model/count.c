/*
 * count.c - parameters and FLOP of a model. Parameters and the exact work come from walking the
 * parameter table; the formulas of Megatron-Core (training.py, num_floating_point_operations) and
 * torchtitan (nparams and FLOP of deepseek_v3) are written from the shapes, so that numbers can be
 * compared with theirs.
 */
#include "model/count.h"

#include "base/text.h"

#include <jansson.h>
#include <stdlib.h>

/* Multiply and add, once forward and twice backward. */
enum { FLOP_PER_WEIGHT = 6 };

static const char *const part_names[N_PARTS] = {
    [PART_EMBEDDING] = "embedding",
    [PART_ATTENTION] = "attention",
    [PART_DENSE_MLP] = "dense_mlp",
    [PART_ROUTED_EXPERTS] = "routed_experts",
    [PART_SHARED_EXPERTS] = "shared_experts",
    [PART_ROUTER] = "router",
    [PART_NORM] = "norm",
    [PART_HEAD] = "head",
};

/* Values of p that one token meets. */
static int64_t active_values(const struct param *p, const struct config_model *m)
{
    if (p->part != PART_ROUTED_EXPERTS) return p->n_all;
    return p->n_all / m->n_routed_experts * m->num_experts_per_tok;
}

/* Weights that are multiplied with each token: matrices, not norms, not the embedding lookup. */
static int64_t multiplied_values(const struct param *p, const struct config_model *m)
{
    return p->n_dims < 2 || p->part == PART_EMBEDDING ? 0 : active_values(p, m);
}

static double head_values(const struct config_model *m)
{
    return (double)m->vocab_size * m->hidden_size;
}

/* Query-key and value products of all layers, forward and backward, for one token and so many
 * keys: two products of H heads each way, and backward has two for each. */
static double attention_flop(const struct config_model *m, int n_layers, double n_keys)
{
    const double width = m->qk_nope_head_dim + m->qk_rope_head_dim + m->v_head_dim;
    return FLOP_PER_WEIGHT * (double)n_layers * m->num_attention_heads * width * n_keys;
}

/* Megatron-Core: latent norms counted, router not; causal attention as T / 2 keys; each MTP module
 * adds a MoE layer, its projection, three norms and one more head. */
static double megatron_flop(const struct config *cfg)
{
    const struct config_model *m = &cfg->model;
    const double D = m->hidden_size, H = m->num_attention_heads, r_kv = m->kv_lora_rank;
    const double d_qk = m->qk_nope_head_dim + m->qk_rope_head_dim;
    const int n_mtp = m->num_nextn_predict_layers, n_layers = m->num_hidden_layers + n_mtp;
    const int n_dense = m->first_k_dense_replace;
    const double q = m->q_lora_rank ? m->q_lora_rank * (D + H * d_qk + 1) : D * H * d_qk;
    const double attention = q + r_kv * (D + H * (m->qk_nope_head_dim + m->v_head_dim) + 1) +
                             D * m->qk_rope_head_dim + H * m->v_head_dim * D;
    const double dense = 3 * D * m->intermediate_size;
    const double moe =
        3 * D * m->moe_intermediate_size * (m->num_experts_per_tok + m->n_shared_experts);
    const double mtp = n_mtp * (3 * D + 2 * D * D);
    const double weights = n_layers * attention + n_dense * dense + (n_layers - n_dense) * moe +
                           mtp + (1 + n_mtp) * head_values(m);
    return FLOP_PER_WEIGHT * weights + attention_flop(m, n_layers, cfg->data.sequence_length / 2.0);
}

static void count_flop(struct model_counts *counts, const struct config *cfg,
                       const struct param_table *table)
{
    const struct config_model *m = &cfg->model;
    const int n_mtp = m->num_nextn_predict_layers, n_layers = m->num_hidden_layers + n_mtp;
    const double T = cfg->data.sequence_length;
    int64_t multiplied = 0, active = 0;
    for (int i = 0; i < table->n_params; i++) {
        multiplied += multiplied_values(&table->param[i], m);
        active += active_values(&table->param[i], m);
    }
    counts->sequence_length = cfg->data.sequence_length;
    counts->flop_exact = FLOP_PER_WEIGHT * ((double)multiplied + n_mtp * head_values(m)) +
                         attention_flop(m, n_layers, (T + 1) / 2);
    counts->flop_megatron = megatron_flop(cfg);
    /* torchtitan: MTP weights are counted, its attention and its second pass of the head are not */
    counts->flop_torchtitan = FLOP_PER_WEIGHT * ((double)active - head_values(m)) +
                              attention_flop(m, m->num_hidden_layers, T);
}

void model_count(struct model_counts *counts, const struct config *cfg)
{
    const struct config_model *m = &cfg->model;
    struct param_table table;
    param_table_init_whole(&table, cfg);
    *counts = (struct model_counts){0};
    for (int i = 0; i < table.n_params; i++) {
        const struct param *p = &table.param[i];
        if (p->mtp) {
            counts->mtp_params += p->n_all;
            continue;
        }
        counts->part[p->part] += p->n_all;
        counts->params_total += p->n_all;
        counts->params_active += active_values(p, m);
    }
    counts->params_active_no_input_embedding = counts->params_active - counts->part[PART_EMBEDDING];
    counts->params_active_no_embeddings =
        counts->params_active_no_input_embedding - counts->part[PART_HEAD];
    if (config_experts_biased(m)) {
        const int64_t n_moe = m->num_hidden_layers - m->first_k_dense_replace;
        counts->router_bias = n_moe * m->n_routed_experts;
        counts->mtp_router_bias = (int64_t)m->num_nextn_predict_layers * m->n_routed_experts;
    }
    const int64_t copies = counts->part[PART_EMBEDDING] + counts->part[PART_HEAD];
    counts->released = counts->params_total + counts->router_bias + counts->mtp_params +
                       counts->mtp_router_bias + m->num_nextn_predict_layers * copies;
    count_flop(counts, cfg, &table);
    param_table_free(&table);
}

static void print_count(FILE *out, const char *what, int64_t n)
{
    char text[TEXT_NUMBER];
    fprintf(out, "  %-38s %20s\n", what, text_grouped(text, n));
}

static void print_gflop(FILE *out, const char *what, double flop)
{
    fprintf(out, "  %-38s %20.*f\n", what, flop < 1e9 ? 6 : 3, flop / 1e9);
}

void model_counts_print(const struct model_counts *c, FILE *out)
{
    fputs("parameters\n", out);
    for (int part = 0; part < N_PARTS; part++) print_count(out, part_names[part], c->part[part]);
    print_count(out, "total", c->params_total);
    print_count(out, "selection-bias values (not trained)", c->router_bias);
    fputs("active for one token\n", out);
    print_count(out, "with both embeddings", c->params_active);
    print_count(out, "without the input embedding", c->params_active_no_input_embedding);
    print_count(out, "without both embeddings", c->params_active_no_embeddings);
    fputs("MTP modules, without the shared embedding and head\n", out);
    print_count(out, "parameters", c->mtp_params);
    print_count(out, "selection-bias values (not trained)", c->mtp_router_bias);
    fputs("released checkpoint, with the MTP modules' copies of embedding and head\n", out);
    print_count(out, "values", c->released);
    fprintf(out, "GFLOP a token at %d tokens a sequence, forward and backward, with MTP\n",
            c->sequence_length);
    print_gflop(out, "exact (causal)", c->flop_exact);
    print_gflop(out, "Megatron's formula", c->flop_megatron);
    print_gflop(out, "torchtitan's formula (not causal)", c->flop_torchtitan);
}

void model_counts_print_json(const struct model_counts *c, FILE *out)
{
    json_t *parts = json_object();
    for (int part = 0; part < N_PARTS; part++)
        json_object_set_new(parts, part_names[part], json_integer(c->part[part]));
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:i, s:{s:f, s:f, s:f}}", "params_total",
        c->params_total, "params_active", c->params_active, "params_active_no_input_embedding",
        c->params_active_no_input_embedding, "params_active_no_embeddings",
        c->params_active_no_embeddings, "router_bias", c->router_bias, "mtp_params", c->mtp_params,
        "mtp_router_bias", c->mtp_router_bias, "released_total", c->released, "params_by_part",
        parts, "sequence_length", c->sequence_length, "flop_per_token", "exact", c->flop_exact,
        "megatron", c->flop_megatron, "torchtitan", c->flop_torchtitan);
    CHECK(object, "Jansson: no memory for the counts");
    json_dumpf(object, out, JSON_INDENT(2)); /* failures: output_end */
    fputc('\n', out);
    json_decref(object);
}
