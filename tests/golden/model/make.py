"""
make.py - writes the golden files of this directory; README.md says what is in them.

    python make.py [directory]      (torch, transformers, numpy, h5py, xxhash)
"""

import json
import os
import sys

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import h5py
import numpy as np
import torch
import transformers

import cases
import init
import reference

# A choice of experts closer than this could be made differently by a correct program that adds in
# another order; the seeds are such that none is.
MIN_MARGIN = 2e-5


def golden_weights(m, seed):
    return {name: init.weight(seed, name, shape, m["initializer_range"])
            for name, shape in reference.param_shapes(m).items()}


def moe_layers(m):
    return range(m["first_k_dense_replace"],
                 m["num_hidden_layers"] + m["num_nextn_predict_layers"])


def golden_biases(m, seed):
    if m["topk_method"] != "noaux_tc":
        return {}
    return {layer: init.router_bias(seed, layer, m["n_routed_experts"]) for layer in moe_layers(m)}


def run_reference(m, seed, token, doc_start=None, dtype=torch.float64, **weights):
    """Forward and backward of reference.py; returns its result and the gradients by name."""
    params = {n: torch.tensor(w, dtype=dtype, requires_grad=True)
              for n, w in golden_weights(m, seed).items()}
    biases = {layer: torch.tensor(b, dtype=dtype) for layer, b in golden_biases(m, seed).items()}
    doc_start = None if doc_start is None else torch.tensor(doc_start)
    result = reference.forward(m, params, biases, torch.tensor(token), doc_start, **weights)
    result["loss"].backward()
    margin = min(layer["margin"] for layer in result["routing"])
    assert margin > MIN_MARGIN, f"two experts are only {margin:.1e} apart: choose another seed"
    return result, {n: p.grad.to(torch.float32).numpy() for n, p in params.items()}


def hf_config(kind, m):
    m = dict(m)
    yarn = m.pop("rope_scaling", None)
    rope = {"rope_type": "default", "rope_theta": m.pop("rope_theta")}
    if yarn:
        rope.update({k: v for k, v in yarn.items() if k != "type"}, rope_type="yarn")
    scoring, method = m.pop("scoring_func"), m.pop("topk_method")
    if kind == "DeepseekV2":
        assert scoring == "softmax"
        m["topk_method"] = method
        del m["num_nextn_predict_layers"]
    else:
        assert scoring == "sigmoid" and method == "noaux_tc"
    return getattr(transformers, kind + "Config")(
        **m, rope_parameters=rope, num_key_value_heads=m["num_attention_heads"],
        pad_token_id=None, tie_word_embeddings=False, attention_dropout=0.0)


def hf_views(model, n_experts_wide):
    """Hugging Face's parameters under our names: {name: (parameter, index of the part)}. The
    gate and up projections of the experts lie in one tensor, the gate's rows first."""
    views = {}
    for name, p in model.named_parameters():
        if name.endswith("experts.gate_up_proj"):
            stem = name.removesuffix("gate_up_proj")
            views[stem + "gate_proj.weight"] = (p, np.s_[:, :n_experts_wide])
            views[stem + "up_proj.weight"] = (p, np.s_[:, n_experts_wide:])
        elif name.endswith("experts.down_proj"):
            views[name + ".weight"] = (p, np.s_[:])
        else:
            views[name] = (p, np.s_[:])
    return views


def hf_model(kind, m, seed):
    """The Hugging Face model with our starting values, its views, and the lists that its routers
    fill in every forward pass."""
    model = getattr(transformers, kind + "ForCausalLM")._from_config(
        hf_config(kind, m), attn_implementation="eager", experts_implementation="eager",
        dtype=torch.float32)
    views = hf_views(model, m["moe_intermediate_size"])
    weights = golden_weights(m, seed)
    assert views.keys() == weights.keys(), views.keys() ^ weights.keys()
    with torch.no_grad():
        for name, (p, part) in views.items():
            p[part] = torch.tensor(weights[name])
    routing = []
    for layer in moe_layers(m):
        gate = model.model.layers[layer].mlp.gate
        if m["topk_method"] == "noaux_tc":
            gate.e_score_correction_bias.copy_(torch.tensor(golden_biases(m, seed)[layer]))
        gate.register_forward_hook(lambda _m, _in, out: routing.append(out))
    return model, views, routing


def hf_forward(model, token):
    token = torch.tensor(token, dtype=torch.long)
    label = token[:, 1:].contiguous()
    return model(input_ids=token[:, :-1], labels=label, shift_labels=label, use_cache=False)


def number(x):
    return x.item() if isinstance(x, torch.Tensor) else float(x)


def relative(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


def run_hugging_face(kind, m, seed, token):
    model, views, routing = hf_model(kind, m, seed)
    out = hf_forward(model, token)
    out.loss.backward()
    grads = {n: p.grad[part].numpy().copy() for n, (p, part) in views.items()}
    trace = []
    for _, weight, expert in routing:
        expert, order = expert.sort(-1)
        trace.append({"expert": expert, "weight": weight.gather(1, order).detach()})
    V = m["vocab_size"]
    loss = torch.nn.functional.cross_entropy(out.logits.reshape(-1, V),
                                             torch.tensor(token[:, 1:]).reshape(-1).long())
    assert loss.item() == out.loss.item(), "the loss is not the mean over all T targets"
    return {"loss": out.loss, "main_loss": out.loss, "mtp_loss": [], "balance_loss": 0.0,
            "n_targets": [token.shape[0] * (token.shape[1] - 1)], "logits": out.logits.detach(),
            "routing": trace}, grads


def check_reference(name, hf, hf_grads, mine, my_grads):
    """Our own code must give Hugging Face's numbers, or its other cases would prove nothing."""
    assert len(hf["routing"]) == len(mine["routing"])
    loss = abs(mine["loss"].item() / hf["loss"].item() - 1)
    grad = max(relative(hf_grads[n], my_grads[n]) for n in hf_grads)
    weight = max(relative(a["weight"].numpy(), b["weight"].numpy())
                 for a, b in zip(hf["routing"], mine["routing"]))
    logits = relative(hf["logits"].numpy(), mine["logits"].numpy())
    same = all((a["expert"] == b["expert"]).all() for a, b in zip(hf["routing"], mine["routing"]))
    print(f"{name}: Hugging Face (F32) against reference.py (F64), relative: loss {loss:.1e}, "
          f"gradients {grad:.1e}, router weights {weight:.1e}, logits {logits:.1e}, "
          f"experts {'equal' if same else 'DIFFER'}")
    assert loss < 1e-6 and grad < 1e-5 and weight < 1e-5 and logits < 1e-5 and same


def yaml_lines(section, indent):
    for k, v in section.items():
        if isinstance(v, dict):
            yield f"{indent}{k}:"
            yield from yaml_lines(v, indent + "  ")
        else:
            yield f"{indent}{k}: {json.dumps(v) if v is None or isinstance(v, bool) else v}"


def config_text(m, seed, B, T, train=None, data=None, optimizer=None):
    sections = {
        "run": {"dir": "golden", "seed": seed, "backend": "cpu"},
        "data": {"train": "unused.tok.zst", "sequence_length": T, **(data or {})},
        "model": m,
        "train": {"steps": 5, "global_batch": B, "micro_batch": B, "compute_dtype": "f32",
                  "loss_chunk_tokens": 20, "mtp_loss_weight": 0.0, "balance_loss_alpha": 0.0,
                  **(train or {})},
        "optimizer": {"lr": 1e-3, **(optimizer or {})},
    }
    return "\n".join(yaml_lines(sections, "")) + "\n"


class Golden:
    """One file; nothing in it depends on when it is written."""

    def __init__(self, path):
        self.file = h5py.File(path, "w", libver="earliest")

    def put(self, name, value, dtype=None):
        data = np.asarray(value, dtype=dtype)
        return self.file.create_dataset(name, data=data, track_times=False)

    def put_text(self, name, text):
        self.put(name, np.frombuffer(text.encode(), dtype=np.uint8))

    def put_start(self, m, seed):
        """Sums over the starting values, so that a reader sees whether it made the same."""
        for name, w in golden_weights(m, seed).items():
            w = w.astype(np.float64)
            self.put("init/" + name, [w.sum(), np.abs(w).sum()], np.float64)
        for layer, b in golden_biases(m, seed).items():
            self.put(f"router_bias/{layer}", b, np.float32)

    def put_result(self, m, result, grads):
        self.put("loss", number(result["loss"]), np.float64)
        self.put("main_loss", number(result["main_loss"]), np.float64)
        self.put("mtp_loss", [number(x) for x in result["mtp_loss"]], np.float64)
        self.put("balance_loss", number(result["balance_loss"]), np.float64)
        self.put("n_targets", result["n_targets"], np.int64)
        self.put("logits", result["logits"][0, -2:], np.float32)
        for layer, routing in zip(moe_layers(m), result["routing"], strict=True):
            self.put(f"expert/{layer}", routing["expert"], np.int32)
            self.put(f"weight/{layer}", routing["weight"], np.float32)
        for name, g in grads.items():
            self.put("grad/" + name, g, np.float32)

    def close(self):
        self.file.close()


def starts(documents, T):
    rows = []
    for lengths in documents:
        assert sum(lengths) == T + 1
        first = np.cumsum([0] + lengths[:-1])
        rows.append(np.repeat(first, lengths))
    return np.array(rows, dtype=np.int32)


def make_hugging_face(folder):
    for name, (kind, m, B, T, seed) in cases.HUGGING_FACE.items():
        token = init.tokens(seed, (B, T + 1), m["vocab_size"])
        result, grads = run_hugging_face(kind, m, seed, token)
        check_reference(name, result, grads, *run_reference(m, seed, token))
        g = Golden(f"{folder}/{name}.h5")
        g.put_text("config", config_text(m, seed, B, T))
        g.put("token", token)
        g.put_start(m, seed)
        g.put_result(m, result, grads)
        g.close()


def make_independent(folder):
    for name, (m, B, T, seed, documents, train) in cases.INDEPENDENT.items():
        token = init.tokens(seed, (B, T + 1), m["vocab_size"])
        doc_start = starts(documents, T) if documents else None
        result, grads = run_reference(m, seed, token, doc_start,
                                      mtp_weight=train.get("mtp_loss_weight", 0.0),
                                      balance_alpha=train.get("balance_loss_alpha", 0.0))
        data = {"document_mask": True} if documents else {}
        g = Golden(f"{folder}/{name}.h5")
        g.put_text("config", config_text(m, seed, B, T, train, data))
        g.put("token", token)
        if documents:
            g.put("doc_start", doc_start)
        g.put_start(m, seed)
        g.put_result(m, result, grads)
        g.close()
        print(f"{name}: loss {number(result['loss']):.6f}, "
              f"main {number(result['main_loss']):.6f}, "
              f"mtp {[round(number(x), 6) for x in result['mtp_loss']]}, "
              f"balance {number(result['balance_loss']):.6f}, targets {result['n_targets']}")


def bias_step(bias, count, speed, centred):
    """bias and count torch tensors; exact integers decide the sign."""
    E = count.numel()
    step = speed * torch.sign(count.sum() - E * count).to(torch.float32)
    return bias + (step - step.mean() if centred else step)


def make_bias_update(folder):
    """Rows: random loads; all equal; one expert with everything; one short of a large even load;
    a load so large that F32 cannot hold the counts."""
    E, speed = 8, 1e-3
    count = np.array([[3, 7, 5, 5, 0, 9, 5, 6], [5] * 8, [0, 0, 0, 64, 0, 0, 0, 0],
                      [40840] + [40841] * 7, [2**30 + 1] + [2**30] * 6 + [2**30 - 1]], np.int64)
    bias = np.stack([init.router_bias(7, row, E) for row in range(len(count))])
    g = Golden(f"{folder}/bias_update.h5")
    g.put("count", count)
    g.put("bias", bias)
    g.put("speed", speed, np.float64)
    for centred in (False, True):
        after = [bias_step(torch.tensor(b), torch.tensor(c), speed, centred)
                 for b, c in zip(bias, count)]
        g.put("centred" if centred else "plain", torch.stack(after), np.float32)
    g.close()


def check_margins(m, model, routing):
    for layer, (logits, _, _) in zip(moe_layers(m), routing):
        bias = model.model.layers[layer].mlp.gate.e_score_correction_bias
        margin = reference.choose(m, logits.sigmoid(), bias)[1]
        assert margin > MIN_MARGIN, f"two experts are only {margin:.1e} apart"


def make_adamw(folder):
    """Five steps of torch.optim.AdamW on the Hugging Face model, decay on matrices only, the
    gradient clipped, the selection biases moved by the step's own counts.

    eps is 1e-5 so that the run is a test: at 1e-8 an element whose gradient is near zero moves by
    lr times the sign of its rounding error, and F32 and F64 of the same code part by 2e-6 in the
    second loss, 1.6e-5 in the fifth. At 1e-5 they stay within 1e-7."""
    kind, m, B, T, _ = cases.HUGGING_FACE["v3_groups_bias"]
    seed, n_steps, clip, speed = cases.ADAMW_SEED, 5, 0.5, 1e-2
    lr, betas, eps, decay = 4e-3, (0.9, 0.95), 1e-5, 0.1
    E = m["n_routed_experts"]
    token = init.tokens(seed, (n_steps, B, T + 1), m["vocab_size"])
    model, views, routing = hf_model(kind, m, seed)
    params = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in params if p.dim() > 1], "weight_decay": decay},
         {"params": [p for p in params if p.dim() == 1], "weight_decay": 0.0}],
        lr=lr, betas=betas, eps=eps)
    losses, norms, counts = [], [], []
    for step in range(n_steps):
        routing.clear()
        optimizer.zero_grad()
        out = hf_forward(model, token[step])
        out.loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(params, clip).item())
        optimizer.step()
        losses.append(out.loss.item())
        check_margins(m, model, routing)
        count = torch.stack([torch.bincount(r[2].reshape(-1), minlength=E) for r in routing])
        counts.append(count)
        for layer, c in zip(moe_layers(m), count):
            gate = model.model.layers[layer].mlp.gate
            gate.e_score_correction_bias.copy_(
                bias_step(gate.e_score_correction_bias, c, speed, False))
    print("adamw: loss", [round(x, 6) for x in losses], "norm", [round(x, 4) for x in norms])
    g = Golden(f"{folder}/adamw.h5")
    g.put_text("config", config_text(
        m, seed, B, T, {"router_bias_speed": speed}, {},
        {"lr": lr, "min_lr": lr, "schedule": "constant", "warmup_steps": 0, "beta1": betas[0],
         "beta2": betas[1], "eps": eps, "weight_decay": decay, "clip": clip}))
    g.put("token", token)
    g.put_start(m, seed)
    g.put("step_loss", losses, np.float64)
    g.put("step_grad_norm", norms, np.float64)
    g.put("step_count", torch.stack(counts), np.int64)
    for name, (p, part) in views.items():
        w = p.detach()[part].numpy()
        g.put("final_l2/" + name, np.sqrt(np.square(w, dtype=np.float64).sum()), np.float64)
        if w.size <= 1024:
            g.put("final/" + name, w, np.float32)
    for layer in moe_layers(m):
        gate = model.model.layers[layer].mlp.gate
        g.put(f"final_router_bias/{layer}", gate.e_score_correction_bias, np.float32)
    g.close()


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    make_hugging_face(folder)
    make_independent(folder)
    make_bias_update(folder)
    make_adamw(folder)


main()
