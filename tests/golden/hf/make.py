"""
make.py - writes the golden files of this directory, and checks once what dsv3-ckpt exports; README.md
says what is in them.

    python make.py                    (torch, transformers, safetensors, xxhash)
    python make.py check GOLDEN DIR   DIR is loaded, and its loss compared with that of GOLDEN
"""

import json
import os
import shutil
import sys

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import torch
import transformers
import xxhash
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
T, N_SEQUENCES, BLOCK = 24, 4, 128

V3 = {
    "vocab_size": 48, "hidden_size": 16, "num_hidden_layers": 2, "first_k_dense_replace": 1,
    "intermediate_size": 24, "moe_intermediate_size": 8, "num_attention_heads": 2,
    "num_key_value_heads": 2, "q_lora_rank": 12, "kv_lora_rank": 10, "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4, "v_head_dim": 5, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "norm_topk_prob": True,
    "routed_scaling_factor": 2.5, "rms_norm_eps": 1e-6, "max_position_embeddings": 64,
    "initializer_range": 0.2, "pad_token_id": None,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
V2_LITE = {**V3, "q_lora_rank": None, "n_group": 1, "topk_group": 1, "n_shared_experts": 2,
           "topk_method": "greedy", "norm_topk_prob": False, "routed_scaling_factor": 1.0}
# What DeepSeek's own files say; transformers reads and writes other words for it.
YARN = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32,
        "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707}
MOONLIGHT = {**V3, "q_lora_rank": None, "n_group": 1, "topk_group": 1, "n_shared_experts": 2,
             "routed_scaling_factor": 2.446, "rms_norm_eps": 1e-5}
V3_EPS = {**V3, "rms_norm_eps": 1e-5}
# Wide enough for ragged blocks of 128 x 128.
FP8 = {**V3, "vocab_size": 32, "intermediate_size": 130, "q_lora_rank": 130,
       "num_attention_heads": 13, "num_key_value_heads": 13, "n_routed_experts": 4, "n_group": 2,
       "topk_group": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 6}


def build(kind, m, seed):
    """A model of transformers with values that are all different from their defaults."""
    torch.manual_seed(seed)
    prefix = "DeepseekV2" if kind == "v2" else "DeepseekV3"
    config = getattr(transformers, prefix + "Config")(**m)
    model = getattr(transformers, prefix + "ForCausalLM")(config).float().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                p.copy_(1 + 0.1 * torch.randn_like(p))
        for name, b in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                b.copy_(0.05 * torch.randn_like(b))
    return model


def with_small_latents(model):
    """Latents whose mean square is not far from an epsilon, so that the loss tells which it is."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "q_a_proj" in name or "kv_a_proj" in name:
                p.mul_(0.01)
    return model


def disk_tensors(model):
    """Names and values as save_pretrained writes them: an expert each."""
    tensors = {}
    for name, x in model.state_dict().items():
        if name.endswith("experts.gate_up_proj"):
            stem = name.removesuffix("gate_up_proj")
            for e, both in enumerate(x):
                gate, up = both.chunk(2)
                tensors[f"{stem}{e}.gate_proj.weight"] = gate
                tensors[f"{stem}{e}.up_proj.weight"] = up
        elif name.endswith("experts.down_proj"):
            stem = name.removesuffix("down_proj")
            for e, down in enumerate(x):
                tensors[f"{stem}{e}.down_proj.weight"] = down
        else:
            tensors[name] = x
    return {n: x.contiguous().clone() for n, x in tensors.items()}


def tokens(vocab_size):
    return np.random.default_rng(5).integers(0, vocab_size, N_SEQUENCES * T + 1, dtype=np.uint16)


def loss_of(model, ids):
    """Mean over sequences of T inputs and as many labels, as dsv3 cuts the stream."""
    x = torch.tensor(ids.astype(np.int64))
    rows = torch.stack([x[i * T:i * T + T + 1] for i in range(N_SEQUENCES)])
    with torch.no_grad():
        logits = model(rows[:, :-1]).logits.double()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item()


def write_expected(directory, tensors, ids=None, loss=None):
    """Name and XXH3 of the F32 values of each tensor that a checkpoint has."""
    with open(os.path.join(directory, "expected.txt"), "w") as out:
        for name in sorted(tensors):
            raw = tensors[name].float().numpy().tobytes()
            out.write(f"{xxhash.xxh3_64_hexdigest(raw)} model/{name}\n")
    if ids is not None:
        ids.tofile(os.path.join(directory, "tokens.u16"))
        with open(os.path.join(directory, "loss.txt"), "w") as out:
            out.write(f"{loss:.9g}\n")


def fresh(name):
    directory = os.path.join(HERE, name)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return directory


def write_config(directory, config):
    with open(os.path.join(directory, "config.json"), "w") as out:
        json.dump(config, out, indent=2)
        out.write("\n")


def write_shards(directory, tensors, n_files):
    """As released: model-00001-of-0000N.safetensors and an index."""
    names, weight_map = list(tensors), {}
    for f in range(n_files):
        file = f"model-{f + 1:05d}-of-{n_files:05d}.safetensors"
        part = names[f * len(names) // n_files:(f + 1) * len(names) // n_files]
        save_file({n: tensors[n] for n in part}, os.path.join(directory, file))
        weight_map |= dict.fromkeys(part, file)
    total = sum(x.numel() * x.element_size() for x in tensors.values())
    with open(os.path.join(directory, "model.safetensors.index.json"), "w") as out:
        json.dump({"metadata": {"total_size": total}, "weight_map": weight_map}, out)


def make_saved(name, model, **how):
    """What transformers itself writes, in F32, and its loss."""
    directory, ids = fresh(name), tokens(model.config.vocab_size)
    model.save_pretrained(directory, **how)
    os.remove(os.path.join(directory, "generation_config.json"))
    write_expected(directory, disk_tensors(model), ids, loss_of(model, ids))
    for file in os.listdir(directory):
        os.chmod(os.path.join(directory, file), 0o644)


def released_config(kind, m, dtype):
    """config.json in the words of the releases."""
    config = {k: v for k, v in m.items() if k not in ("rope_parameters", "pad_token_id")}
    v3 = kind == "v3"
    config |= {
        "architectures": ["DeepseekV3ForCausalLM" if v3 else "DeepseekV2ForCausalLM"],
        "model_type": "deepseek_v3" if v3 else "deepseek_v2", "torch_dtype": dtype,
        "scoring_func": "sigmoid" if v3 else "softmax",
        "topk_method": "noaux_tc" if v3 else "greedy", "rope_theta": 10000, "rope_scaling": None,
        "hidden_act": "silu", "attention_bias": False, "attention_dropout": 0.0, "ep_size": 1,
        "moe_layer_freq": 1, "aux_loss_alpha": 0.001, "seq_aux": True, "pretraining_tp": 1,
        "tie_word_embeddings": False, "use_cache": True, "num_nextn_predict_layers": 0,
        "bos_token_id": 0, "eos_token_id": 1, "transformers_version": "4.33.1"}
    return config


def make_moonlight():
    """BF16, the selection bias too; frequencies of rotary embeddings lie beside the weights."""
    directory = fresh("moonlight")
    tensors = {n: x.bfloat16() for n, x in disk_tensors(build("v3", MOONLIGHT, 3)).items()}
    write_expected(directory, tensors)
    frequency = 50000.0 ** (-torch.arange(0, 4, 2) / 4)
    for layer in range(2):
        tensors[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = frequency.clone()
    write_shards(directory, tensors, 2)
    write_config(directory, {**released_config("v3", MOONLIGHT, "bfloat16"), "rope_theta": 50000.0})


def make_v2_lite():
    """YaRN in DeepSeek's words; F16, which no release has, of every size and sign."""
    directory = fresh("v2_lite")
    tensors = {n: x.half() for n, x in disk_tensors(build("v2", V2_LITE, 4)).items()}
    embedding = tensors["model.embed_tokens.weight"]
    codes = np.linspace(0, 0x7bff, embedding.numel() // 2).astype(np.uint16)
    codes = np.concatenate([codes, codes + np.uint16(0x8000)]).view(np.float16)
    embedding.copy_(torch.tensor(codes).view_as(embedding))
    write_expected(directory, tensors)
    save_file(tensors, os.path.join(directory, "model.safetensors"))
    config = released_config("v2", V2_LITE, "float16")
    del config["num_nextn_predict_layers"]
    write_config(directory, {**config, "rope_scaling": YARN, "max_position_embeddings": 163840})


def quantise(x):
    """E4M3 and a scale for each block; scale * value is DeepSeek's meaning of the pair. The first
    values of a large matrix are all that E4M3 has."""
    rows, columns = x.shape
    scale = torch.zeros(-(-rows // BLOCK), -(-columns // BLOCK))
    small = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    for i in range(scale.shape[0]):
        for j in range(scale.shape[1]):
            block = (slice(i * BLOCK, (i + 1) * BLOCK), slice(j * BLOCK, (j + 1) * BLOCK))
            scale[i, j] = x[block].abs().max() / 448
            small[block] = (x[block] / scale[i, j]).to(torch.float8_e4m3fn)
    if x.numel() >= 256:
        codes = torch.tensor([c for c in range(256) if c & 0x7f != 0x7f], dtype=torch.uint8)
        small.view(torch.uint8).view(-1)[:254] = codes
    big = small.float() * scale.repeat_interleave(BLOCK, 0)[:rows].repeat_interleave(
        BLOCK, 1)[:, :columns]
    return small, scale, big


def make_fp8_mtp():
    """DeepSeek-V3's release in small: FP8 matrices, BF16 others, F32 biases, an MTP module with
    copies of embedding and head, over three files."""
    directory = fresh("fp8_mtp")
    three = disk_tensors(build("v3", {**FP8, "num_hidden_layers": 3}, 6))
    two = {n: x for n, x in three.items() if ".layers.2." not in n}
    mtp = {n: x for n, x in three.items() if ".layers.2." in n}
    D, p = FP8["hidden_size"], "model.layers.2."
    mtp |= {p + n: 1 + 0.1 * torch.randn(D)
            for n in ("enorm.weight", "hnorm.weight", "shared_head.norm.weight")}
    mtp[p + "eh_proj.weight"] = 0.2 * torch.randn(D, 2 * D)
    files, expected = {}, {}
    for name, x in {**two, **mtp}.items():
        if name.endswith("_proj.weight") and "eh_proj" not in name or "kv_a_proj" in name:
            files[name], scale, expected[name] = quantise(x)
            files[name + "_scale_inv"] = scale
        else:
            expected[name] = files[name] = x if name.endswith("bias") else x.bfloat16()
    files[p + "embed_tokens.weight"] = files["model.embed_tokens.weight"].clone()
    files[p + "shared_head.head.weight"] = files["lm_head.weight"].clone()
    write_expected(directory, expected)
    write_shards(directory, files, 3)
    config = released_config("v3", FP8, "bfloat16")
    write_config(directory, {**config, "num_nextn_predict_layers": 1, "quantization_config": {
        "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
        "weight_block_size": [BLOCK, BLOCK]}})


def check(golden, directory):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, output_loading_info=True)
    ids = np.fromfile(os.path.join(HERE, golden, "tokens.u16"), dtype=np.uint16)
    want = float(open(os.path.join(HERE, golden, "loss.txt")).read())
    loss = loss_of(model.eval(), ids)
    left = {k: v for k, v in info.items() if v}
    print(f"{type(model).__name__} loss {loss:.9g}, expected {want:.9g}, "
          f"{abs(loss - want) / want:.1e} apart; left over: {left or 'nothing'}")
    sys.exit(bool(left) or abs(loss - want) > 1e-6 * want)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        check(*sys.argv[2:])
    make_saved("v3", build("v3", V3, 1), max_shard_size="20KB")
    make_saved("v3_eps", with_small_latents(build("v3", V3_EPS, 7)))
    make_saved("v2", build("v2", V2_LITE, 2))
    make_moonlight()
    make_v2_lite()
    make_fp8_mtp()
