"""
make_keys.py - config.json key by key: left out, null, at its default, at another value; and the loss
that transformers computes with each, or how it refuses. Writes keys_v3/, keys_v2/ (weights and a
config.json) and keys.json.

    python make_keys.py               (torch, transformers, safetensors; make.py beside it)
"""

import copy
import json
import os
import shutil
import tempfile

import torch
import transformers
from safetensors.torch import save_file

from make import HERE, V3, build, disk_tensors, fresh, loss_of, tokens, write_config

transformers.logging.set_verbosity_error()

# Every key that has no bearing on shapes is at its default, so that leaving it out keeps the loss.
BASE_V3 = {**V3, "num_hidden_layers": 4, "first_k_dense_replace": 3, "qk_rope_head_dim": 8,
           "n_routed_experts": 16, "n_group": 8, "topk_group": 4, "num_experts_per_tok": 8,
           "initializer_range": 0.3}
BASE_V2 = {**BASE_V3, "num_hidden_layers": 2, "first_k_dense_replace": 0, "n_shared_experts": 2,
           "n_routed_experts": 8, "n_group": None, "topk_group": None, "num_experts_per_tok": 3,
           "norm_topk_prob": False, "routed_scaling_factor": 1.0, "topk_method": "greedy"}
COMMON = {"hidden_act": "silu", "attention_bias": False, "attention_dropout": 0.0,
          "tie_word_embeddings": False, "rope_theta": 10000.0, "rope_scaling": None,
          "max_position_embeddings": 4096}
YARN = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 64, "beta_fast": 32,
        "beta_slow": 1, "mscale": 0.7, "mscale_all_dim": 0.5}
THETA = {"rope_theta": 100.0}


def released(kind, m):
    config = {k: v for k, v in m.items() if k not in ("rope_parameters", "pad_token_id")}
    config |= COMMON | {"model_type": "deepseek_" + kind, "num_nextn_predict_layers": 0}
    if kind == "v2":
        del config["num_nextn_predict_layers"]
        config["max_position_embeddings"] = 2048
        del config["n_group"], config["topk_group"]
    return config


def yarn(**changes):
    """rope_scaling with changes; a value of ... leaves the key out."""
    return {k: v for k, v in {**YARN, **changes}.items() if v is not ...}


def walk(key, *values):
    """The key left out, null, and at each of the values."""
    yield {"drop": [key]}
    for value in (None, *values):
        yield {"set": {key: value}}


def rows_of_rope():
    for scaling in (
            yarn(), yarn(mscale=...), yarn(mscale_all_dim=...), yarn(mscale=..., mscale_all_dim=...),
            yarn(mscale=0), yarn(mscale_all_dim=0), yarn(mscale=None, mscale_all_dim=None),
            yarn(mscale=1.0, mscale_all_dim=1.0), yarn(mscale="1"),
            yarn(attention_factor=1.3), yarn(attention_factor=0.95), yarn(attention_factor=0.5),
            yarn(attention_factor=None), yarn(attention_factor=1.2, mscale=..., mscale_all_dim=...),
            yarn(beta_fast=1, beta_slow=1), yarn(beta_fast=..., beta_slow=...),
            yarn(beta_fast=None, beta_slow=None), yarn(beta_fast=0, beta_slow=0),
            yarn(beta_fast=1, beta_slow=32), yarn(beta_fast=4, beta_slow=2), yarn(beta_fast="32"),
            yarn(factor=...), yarn(factor=None), yarn(factor=None, mscale_all_dim=...),
            yarn(factor=1), yarn(factor=0.5), yarn(factor=40.0),
            yarn(truncate=True), yarn(truncate=False, beta_fast=4, beta_slow=2), yarn(truncate=None),
            yarn(original_max_position_embeddings=2), yarn(original_max_position_embeddings=6),
            yarn(original_max_position_embeddings=1 << 20),
            yarn(original_max_position_embeddings=1 << 24, beta_slow=30),
            yarn(original_max_position_embeddings=...), yarn(original_max_position_embeddings=None),
            yarn(rope_type="yarn"), yarn(type=..., rope_type="yarn"), yarn(rope_type="default"),
            yarn(type=...), yarn(type="linear"), yarn(rope_type=None), yarn(type="default"),
            yarn(type="linear", rope_type="yarn"), yarn(rope_theta=50.0), yarn(rope_theta=None),
            yarn(partial_rotary_factor=1.0), yarn(partial_rotary_factor=0.5), yarn(alpha=3)):
        yield {"set": {"rope_scaling": scaling, **THETA}}
    parameters = {"rope_type": "default", "rope_theta": 30.0}
    for beside in (None, {}, yarn(), {"type": "default"}, {"rope_type": "default", **THETA}):
        yield {"set": {"rope_scaling": beside, "rope_parameters": parameters}}
        yield {"set": {"rope_scaling": beside, "rope_parameters": yarn(rope_theta=100.0)}}
        yield {"set": {"rope_scaling": beside, "rope_parameters": {}}}
    yield {"set": {"rope_parameters": yarn(), **THETA}, "drop": ["rope_scaling"]}
    yield {"set": {"rope_parameters": yarn(truncate=True)}, "drop": ["rope_scaling", "rope_theta"]}
    yield {"set": {"rope_parameters": "yarn"}}
    yield {"set": {"rope_scaling": [1]}}
    original = "original_max_position_embeddings"
    for value in (None, 64, 32):
        yield {"set": {"rope_scaling": yarn(), original: value, **THETA}}
    yield {"set": {original: 32}}
    yield {"set": {"rope_scaling": yarn(original_max_position_embeddings=...), original: 64, **THETA}}
    yield {"set": {"rope_scaling": yarn(original_max_position_embeddings=...), **THETA},
           "drop": ["max_position_embeddings"]}
    yield {"set": {"partial_rotary_factor": 0.5, "rope_scaling": yarn(), **THETA}}
    yield {"set": {"partial_rotary_factor": 1.0, "rope_scaling": yarn(), **THETA}}
    yield from walk("rope_theta", 10000.0, 100, "100")
    yield {"set": {"max_position_embeddings": 64, "rope_scaling": yarn(), **THETA}}


def rows_v3():
    yield {}
    yield from walk("n_group", 8, 4, 1)
    yield from walk("topk_group", 4, 8, 5)
    yield {"drop": ["n_group", "topk_group"]}
    yield from walk("num_experts_per_tok", 8, 3)
    yield from walk("n_shared_experts", 1, 2)
    yield from walk("first_k_dense_replace", 3, 2)
    yield from walk("norm_topk_prob", True, False)
    yield from walk("routed_scaling_factor", 2.5, 1.5)
    yield from walk("rms_norm_eps", 1e-6, 1e-3)
    yield from walk("initializer_range", 0.02, 0.3)
    yield from walk("max_position_embeddings", 4096, 64)
    yield from walk("num_key_value_heads", 2, 1)
    yield from walk("num_nextn_predict_layers", 0)
    yield from walk("num_mtp_layers", 0)
    yield from walk("hidden_act", "silu", "gelu")
    yield from walk("attention_bias", False, True)
    yield from walk("attention_dropout", 0.0, 0.5)
    yield from walk("tie_word_embeddings", False, True)
    yield from walk("rope_interleave", True, False)
    yield from walk("moe_layer_freq", 1, 2)
    yield from walk("scoring_func", "sigmoid", "softmax")
    yield from walk("topk_method", "noaux_tc", "greedy")
    yield from walk("mlp_bias", False, True)
    yield from walk("num_local_experts", 16, 8)
    yield from walk("num_experts", 8)
    yield from walk("aux_loss_alpha", 0.001)
    yield from walk("is_causal", True, False)
    yield from walk("head_dim", 8, 4)
    yield {"drop": ["n_routed_experts"], "set": {"num_local_experts": 16}}
    yield {"drop": ["q_lora_rank"]}
    yield {"drop": ["n_routed_experts"]}
    yield {"set": {"architectures": ["DeepseekV3ForCausalLM"]}}
    yield {"drop": ["model_type"]}
    yield from rows_of_rope()


def rows_v2():
    yield {}
    yield from walk("n_group", 1, 4)
    yield from walk("topk_method", "greedy", "group_limited_greedy", "noaux_tc")
    groups = {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2}
    yield {"set": groups}
    yield {"set": {**groups, "topk_group": None}}
    yield {"set": {**groups, "n_group": 1, "topk_group": 1}}
    yield {"set": {k: v for k, v in groups.items() if k != "n_group"}}
    yield from walk("num_experts_per_tok", 3, 6)
    yield from walk("n_shared_experts", 2, 1)
    yield from walk("first_k_dense_replace", 0, 1)
    yield from walk("norm_topk_prob", False, True)
    yield from walk("routed_scaling_factor", 1.0, 2.5)
    yield from walk("rms_norm_eps", 1e-6, 1e-3)
    yield from walk("num_key_value_heads", 2, 1)
    yield from walk("num_nextn_predict_layers", 0, 1)
    yield from walk("hidden_act", "silu", "gelu")
    yield from walk("mlp_bias", False, True)
    yield from walk("rope_interleave", True, False)
    yield from walk("scoring_func", "softmax", "sigmoid")
    yield from walk("num_experts", 8, 4)
    yield from walk("num_local_experts", 4)
    yield from walk("max_position_embeddings", 2048)
    yield {"set": {"rope_scaling": yarn(original_max_position_embeddings=...), **THETA},
           "drop": ["max_position_embeddings"]}
    yield {"set": {"rope_scaling": yarn(), **THETA}}
    yield {"set": {"rope_scaling": yarn(mscale=...), **THETA}}


def refused_here(row):
    """What transformers computes and dsv3 has no key for, or what other programs take otherwise."""
    new = row.get("set", {})
    for key, values in {"hidden_act": ["gelu"], "attention_dropout": [0.5], "moe_layer_freq": [2],
                        "tie_word_embeddings": [True], "is_causal": [None, False]}.items():
        if key in new and new[key] in values:
            return True
    if row["class"] == "v3" and new.get("rope_interleave", True) is not True:
        return True
    if row["class"] == "v2" and new.get("norm_topk_prob") is True:
        return True
    rope = new.get("rope_scaling")
    if not isinstance(rope, dict):
        return False
    types = {rope[k] for k in ("type", "rope_type") if k in rope}
    return (len(types) > 1 or types == {"linear"} or rope.get("truncate", True) is not True
            or (rope.get("factor") or 1) < 1 or rope.get("attention_factor") == 0.5
            or (rope.get("beta_fast") or 32) < (rope.get("beta_slow") or 1))


def changed(config, row):
    config = {k: v for k, v in config.items() if k not in row.get("drop", ())}
    return config | copy.deepcopy(row.get("set", {}))


def loss_with(weights, config, ids):
    """What transformers computes, or how it says that it cannot."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(os.path.join(weights, "model.safetensors"), directory)
        write_config(directory, config)
        try:
            model, info = transformers.AutoModelForCausalLM.from_pretrained(
                directory, dtype=torch.float32, output_loading_info=True)
            left = {k: sorted(v) for k, v in info.items() if v and k != "unexpected_keys"}
            if left or info.get("unexpected_keys"):
                return {"refused": "other tensors"}
            loss = loss_of(model.eval(), ids)
            return {"loss": float(f"{loss:.9g}")} if loss == loss else {"refused": "nan"}
        except Exception as error:
            text = f"{type(error).__name__}: {error}".replace(directory, "DIR")
            return {"refused": text.splitlines()[0][:100]}


def make(kind, base, seed, rows):
    directory = fresh("keys_" + kind)
    config = released(kind, base)
    model = build(kind, {**base, "rope_parameters": V3["rope_parameters"]}, seed)
    save_file({n: x.bfloat16() for n, x in disk_tensors(model).items()},
              os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})
    write_config(directory, config)
    ids = tokens(base["vocab_size"])
    ids.tofile(os.path.join(directory, "tokens.u16"))
    table = [{"class": kind, **row, **loss_with(directory, changed(config, row), ids)}
             for row in rows]
    return [row | ({"refused_here": True} if "loss" in row and refused_here(row) else {})
            for row in table]


def defaults(kind, **given):
    """Every key left out but those given."""
    prefix = "DeepseekV3" if kind == "v3" else "DeepseekV2"
    config = getattr(transformers, prefix + "Config")(**given)
    keys = ["vocab_size", "hidden_size", "num_hidden_layers", "first_k_dense_replace",
            "intermediate_size", "moe_intermediate_size", "num_attention_heads", "q_lora_rank",
            "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
            "n_routed_experts", "n_shared_experts", "num_experts_per_tok", "norm_topk_prob",
            "routed_scaling_factor", "rms_norm_eps", "max_position_embeddings",
            "initializer_range", "bos_token_id", "eos_token_id", "pad_token_id"]
    keys += ["n_group", "topk_group", "num_nextn_predict_layers"] if kind == "v3" else []
    values = {k: getattr(config, k) for k in keys}
    return {"class": kind, "only": {"model_type": "deepseek_" + kind, **given},
            "value": {**values, "rope_theta": config.rope_parameters["rope_theta"]}}


if __name__ == "__main__":
    table = make("v3", BASE_V3, 11, rows_v3()) + make("v2", BASE_V2, 12, rows_v2())
    table += [defaults("v3"), defaults("v2", num_experts_per_tok=6)]
    table += [{"class": "v2", "only": {"model_type": "deepseek_v2"}, "refused": "no num_experts_per_tok"}]
    with open(os.path.join(HERE, "keys.json"), "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(row) for row in table) + "\n]\n")
