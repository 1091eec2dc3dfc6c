/* lib_config.c - see lib_config.h. */
#include "lib_config.h"
#include "test.h"

#include <string.h>

const char config_small_text[] =
    "model: {vocab_size: 512, hidden_size: 64, num_hidden_layers: 4, first_k_dense_replace: 1,\n"
    "  intermediate_size: 128, moe_intermediate_size: 32, num_attention_heads: 4,\n"
    "  q_lora_rank: 32, kv_lora_rank: 16, qk_nope_head_dim: 16, qk_rope_head_dim: 8,\n"
    "  v_head_dim: 16, n_routed_experts: 8, n_shared_experts: 1, num_experts_per_tok: 4,\n"
    "  n_group: 4, topk_group: 2, routed_scaling_factor: 2.5, num_nextn_predict_layers: 1}\n"
    "run: {dir: runs/x}\n"
    "data: {train: [a.tok.zst], sequence_length: 32}\n"
    "train: {steps: 20, global_batch: 8}\n"
    "optimizer: {lr: 1e-3}";

void config_must_load(struct config *cfg, const char *file, char *const overrides[])
{
    struct err_list errs = {0};
    int n = 0;
    while (overrides && overrides[n]) n++;
    const int bad = config_try_load(cfg, file, n, overrides, &errs);
    EXPECT(!bad && errs.n == 0, "%s: %s", file, errs.text ? errs.text : "no message");
    err_free(&errs);
}

void config_must_load_text(struct config *cfg, const char *text, char *const overrides[])
{
    char path[600];
    snprintf(path, sizeof path, "%s/config.yaml", test_tmpdir());
    FILE *out = fopen(path, "wb");
    EXPECT(out && fputs(text, out) >= 0 && !fclose(out), "cannot write %s", path);
    config_must_load(cfg, path, overrides);
}
