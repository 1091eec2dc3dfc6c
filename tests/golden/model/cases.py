"""
cases.py - the configurations of the golden models: small enough to read, ragged enough to catch a
wrong stride (v_head_dim differs from qk_nope_head_dim, the vocabulary is odd, ...). rms_norm_eps
is 1e-6 everywhere because Hugging Face's latent norms ignore the configured value.
"""

V3 = {
    "vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 3, "first_k_dense_replace": 1,
    "intermediate_size": 48, "moe_intermediate_size": 16, "num_attention_heads": 4,
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 12, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 3,
    "n_group": 2, "topk_group": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
    "norm_topk_prob": True, "routed_scaling_factor": 2.5, "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0, "max_position_embeddings": 64, "num_nextn_predict_layers": 0,
    "initializer_range": 0.15,
}
YARN = {"type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096,
        "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}

GROUPS_BIAS = {**V3, "n_routed_experts": 16, "moe_intermediate_size": 8, "n_group": 4,
               "topk_group": 2, "num_experts_per_tok": 4}
NO_Q_LORA = {**V3, "vocab_size": 131, "hidden_size": 36, "q_lora_rank": None,
             "first_k_dense_replace": 2, "n_group": 4, "topk_group": 3}
V2_SOFTMAX = {**V3, "q_lora_rank": None, "n_group": 1, "topk_group": 1, "n_shared_experts": 2,
              "scoring_func": "softmax", "topk_method": "greedy", "norm_topk_prob": False,
              "routed_scaling_factor": 1.5}
WITH_YARN = {**V3, "n_group": 1, "topk_group": 1, "rope_scaling": YARN,
             "max_position_embeddings": 163840}
MTP = {**V3, "vocab_size": 96, "num_hidden_layers": 2, "num_nextn_predict_layers": 2}

# name -> Hugging Face class prefix, model, sequences B, tokens T, seed
HUGGING_FACE = {
    "v3_groups_bias": ("DeepseekV3", GROUPS_BIAS, 3, 24, 1234),
    "v3_no_q_lora": ("DeepseekV3", NO_Q_LORA, 2, 29, 1235),
    "v2_softmax": ("DeepseekV2", V2_SOFTMAX, 2, 24, 1236),
    "v3_yarn": ("DeepseekV3", WITH_YARN, 2, 32, 1237),
}

# name -> model, B, T, seed, documents, and the weights of the additional losses
INDEPENDENT = {
    "mtp_depth2": (MTP, 3, 24, 1238, None, {"mtp_loss_weight": 0.3}),
    "mtp_depth2_raw": ({**MTP, "mtp_hidden": "raw"}, 3, 24, 1238, None, {"mtp_loss_weight": 0.3}),
    "sequence_balance": ({**GROUPS_BIAS, "num_hidden_layers": 2, "num_nextn_predict_layers": 1},
                         3, 24, 1239, None,
                         {"balance_loss_alpha": 0.1, "mtp_loss_weight": 0.3}),
    # Lengths of the documents in each window of T + 1 tokens; the first of the second window
    # began before it.
    "doc_mask": (MTP, 2, 32, 1240, [[5, 1, 2, 8, 16, 1], [20, 3, 10]], {"mtp_loss_weight": 0.3}),
}
ADAMW_SEED = 1241
