/* hf_config_write.c - a model as config.json; see hf_config.h. */
#include "hf_config.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

static void put_int(FILE *out, const char *key, int64_t x)
{
    fprintf(out, "  \"%s\": %lld,\n", key, (long long)x);
}

/* With a point where Python wants to see a float. */
static void put_number(FILE *out, int indent, const char *key, double x)
{
    char text[TEXT_NUMBER];
    text_shortest(text, x);
    fprintf(out, "%*s\"%s\": %s%s,\n", indent, "", key, text, strpbrk(text, ".en") ? "" : ".0");
}

static void put_bool(FILE *out, const char *key, bool x)
{
    fprintf(out, "  \"%s\": %s,\n", key, x ? "true" : "false");
}

static void put_id(FILE *out, const char *key, int id)
{
    if (id < 0)
        fprintf(out, "  \"%s\": null,\n", key);
    else
        put_int(out, key, id);
}

/* Names and forms that all versions of the classes read. With mscale_all_dim 0 they take mscale for
 * 1, so that our factor on cos and sin has to be written down. */
static void put_rope(FILE *out, const struct config_model *m)
{
    put_number(out, 2, "rope_theta", m->rope_theta);
    if (m->rope_type == ROPE_DEFAULT) {
        fputs("  \"rope_scaling\": null,\n", out);
        return;
    }
    fputs("  \"rope_scaling\": {\n", out);
    put_number(out, 4, "factor", m->rope_factor);
    put_number(out, 4, "beta_fast", m->rope_beta_fast);
    put_number(out, 4, "beta_slow", m->rope_beta_slow);
    put_number(out, 4, "mscale", m->rope_mscale);
    put_number(out, 4, "mscale_all_dim", m->rope_mscale_all_dim);
    if (m->rope_mscale == 0 || m->rope_mscale_all_dim == 0) {
        const double grown = 0.1 * log(m->rope_factor);
        put_number(out, 4, "attention_factor",
                   (grown * m->rope_mscale + 1) / (grown * m->rope_mscale_all_dim + 1));
    }
    fprintf(out, "    \"original_max_position_embeddings\": %d,\n    \"type\": \"yarn\"\n  },\n",
            m->rope_original_max_position_embeddings);
}

static void put_shape(FILE *out, const struct config_model *m)
{
    put_int(out, "vocab_size", m->vocab_size);
    put_int(out, "hidden_size", m->hidden_size);
    put_int(out, "num_hidden_layers", m->num_hidden_layers);
    put_int(out, "num_nextn_predict_layers", m->num_nextn_predict_layers);
    put_int(out, "first_k_dense_replace", m->first_k_dense_replace);
    put_int(out, "moe_layer_freq", 1);
    put_int(out, "intermediate_size", m->intermediate_size);
    put_int(out, "moe_intermediate_size", m->moe_intermediate_size);
    put_int(out, "num_attention_heads", m->num_attention_heads);
    put_int(out, "num_key_value_heads", m->num_attention_heads);
    put_id(out, "q_lora_rank", m->q_lora_rank ? m->q_lora_rank : -1);
    put_int(out, "kv_lora_rank", m->kv_lora_rank);
    put_int(out, "qk_nope_head_dim", m->qk_nope_head_dim);
    put_int(out, "qk_rope_head_dim", m->qk_rope_head_dim);
    put_int(out, "v_head_dim", m->v_head_dim);
    put_int(out, "max_position_embeddings", m->max_position_embeddings);
}

static void put_router(FILE *out, const struct config_model *m)
{
    static const char *const methods[] = {"noaux_tc", "greedy", "group_limited_greedy"};
    put_int(out, "n_routed_experts", m->n_routed_experts);
    put_int(out, "n_shared_experts", m->n_shared_experts);
    put_int(out, "num_experts_per_tok", m->num_experts_per_tok);
    put_int(out, "n_group", m->n_group);
    put_int(out, "topk_group", m->topk_group);
    fprintf(out, "  \"scoring_func\": \"%s\",\n  \"topk_method\": \"%s\",\n",
            m->scoring_func == SCORING_SIGMOID ? "sigmoid" : "softmax", methods[m->topk_method]);
    put_bool(out, "norm_topk_prob", m->norm_topk_prob);
    put_number(out, 2, "routed_scaling_factor", m->routed_scaling_factor);
}

/* 3: DeepseekV3ForCausalLM, 2: DeepseekV2ForCausalLM, 0: none. */
static int class_of(const struct config_model *m)
{
    if (m->scoring_func == SCORING_SIGMOID) return m->topk_method == TOPK_NOAUX_TC ? 3 : 0;
    return m->topk_method != TOPK_NOAUX_TC && !m->norm_topk_prob && !m->num_nextn_predict_layers &&
                   m->n_shared_experts > 0
               ? 2
               : 0;
}

char *hf_config_try_text(const struct config_model *m, bool is_bf16, struct hf_ids ids,
                         struct fault *fault)
{
    const int class = class_of(m);
    char *text = NULL;
    size_t n = 0;
    if (!class) {
        fault_set(fault, CODE_CONFIG,
                  "no class of Hugging Face has such a router: expected sigmoid with noaux_tc "
                  "(DeepseekV3ForCausalLM), or softmax with greedy or group_limited_greedy, shared "
                  "experts, no norm_topk_prob and no MTP (DeepseekV2ForCausalLM)");
        return NULL;
    }
    FILE *out = open_memstream(&text, &n);
    CHECK(out, "no memory for config.json");
    fprintf(out,
            "{\n  \"architectures\": [\n    \"DeepseekV%dForCausalLM\"\n  ],\n"
            "  \"model_type\": \"deepseek_v%d\",\n  \"torch_dtype\": \"%s\",\n",
            class, class, is_bf16 ? "bfloat16" : "float32");
    put_shape(out, m);
    put_router(out, m);
    put_rope(out, m);
    put_number(out, 2, "rms_norm_eps", m->rms_norm_eps);
    put_number(out, 2, "initializer_range", m->initializer_range);
    put_id(out, "bos_token_id", ids.bos);
    put_id(out, "eos_token_id", ids.eos);
    put_id(out, "pad_token_id", ids.pad);
    fputs("  \"hidden_act\": \"silu\",\n  \"attention_bias\": false,\n"
          "  \"attention_dropout\": 0.0,\n  \"tie_word_embeddings\": false,\n"
          "  \"use_cache\": true\n}\n",
          out);
    CHECK(!fclose(out) && text, "no memory for config.json");
    return text;
}
