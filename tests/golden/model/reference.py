"""
reference.py - the whole model once more in plain PyTorch functions and autograd, written from the
paper and MODEL_SPEC, for what Hugging Face's classes lack: multi-token prediction, the
sequence-wise balance loss, the document mask. make.py first shows that it gives Hugging Face's
numbers where both exist. Parameters are a dict by Hugging Face name; the experts of one layer and
projection are one tensor [E, out, in].

m is the model section of a case (Hugging Face's key names). B sequences, T tokens, D width,
H heads, E experts, K experts per token.
"""

import math

import torch


def param_shapes(m):
    """Name -> shape of everything that is trained."""
    D, H = m["hidden_size"], m["num_attention_heads"]
    d_qk = m["qk_nope_head_dim"] + m["qk_rope_head_dim"]
    d_kv = m["qk_nope_head_dim"] + m["v_head_dim"]
    shapes = {"model.embed_tokens.weight": (m["vocab_size"], D)}

    def mlp(prefix, width, leading=()):
        shapes[prefix + "gate_proj.weight"] = (*leading, width, D)
        shapes[prefix + "up_proj.weight"] = (*leading, width, D)
        shapes[prefix + "down_proj.weight"] = (*leading, D, width)

    for layer in range(m["num_hidden_layers"] + m["num_nextn_predict_layers"]):
        p = f"model.layers.{layer}."
        if layer >= m["num_hidden_layers"]:
            shapes[p + "enorm.weight"] = shapes[p + "hnorm.weight"] = (D,)
            shapes[p + "eh_proj.weight"] = (D, 2 * D)
            shapes[p + "shared_head.norm.weight"] = (D,)
        shapes[p + "input_layernorm.weight"] = (D,)
        shapes[p + "post_attention_layernorm.weight"] = (D,)
        a = p + "self_attn."
        if m["q_lora_rank"]:
            shapes[a + "q_a_proj.weight"] = (m["q_lora_rank"], D)
            shapes[a + "q_a_layernorm.weight"] = (m["q_lora_rank"],)
            shapes[a + "q_b_proj.weight"] = (H * d_qk, m["q_lora_rank"])
        else:
            shapes[a + "q_proj.weight"] = (H * d_qk, D)
        shapes[a + "kv_a_proj_with_mqa.weight"] = (m["kv_lora_rank"] + m["qk_rope_head_dim"], D)
        shapes[a + "kv_a_layernorm.weight"] = (m["kv_lora_rank"],)
        shapes[a + "kv_b_proj.weight"] = (H * d_kv, m["kv_lora_rank"])
        shapes[a + "o_proj.weight"] = (D, H * m["v_head_dim"])
        if layer < m["first_k_dense_replace"]:
            mlp(p + "mlp.", m["intermediate_size"])
        else:
            F = m["moe_intermediate_size"]
            shapes[p + "mlp.gate.weight"] = (m["n_routed_experts"], D)
            mlp(p + "mlp.experts.", F, (m["n_routed_experts"],))
            mlp(p + "mlp.shared_experts.", F * m["n_shared_experts"])
    shapes["model.norm.weight"] = (D,)
    shapes["lm_head.weight"] = (m["vocab_size"], D)
    return shapes


def rms_norm(x, gain, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def rope_frequencies(m):
    """Angle per position of each pair, and the factor YaRN puts on the attention scale."""
    d, theta = m["qk_rope_head_dim"], m["rope_theta"]
    freq = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    yarn = m.get("rope_scaling")
    if not yarn:
        return freq, 1.0

    def pair_turning(rotations):
        length = yarn["original_max_position_embeddings"]
        return d * math.log(length / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(pair_turning(yarn["beta_fast"])), 0)
    high = min(math.ceil(pair_turning(yarn["beta_slow"])), d - 1)
    high = high + 0.001 if low == high else high
    ramp = ((torch.arange(d // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    mscale = 0.1 * yarn["mscale_all_dim"] * math.log(yarn["factor"]) + 1.0
    assert yarn["mscale"] == yarn["mscale_all_dim"], "otherwise cos and sin need a factor too"
    return freq * (1 - ramp) + freq / yarn["factor"] * ramp, mscale**2


def rotate(x, freq):
    """x [B, T, heads, d_rope]: pair (2i, 2i+1) turned by position * freq[i]."""
    T = x.shape[1]
    angle = torch.arange(T, dtype=torch.float64)[:, None] * freq
    cos, sin = angle.cos().to(x.dtype)[:, None], angle.sin().to(x.dtype)[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def attention(m, params, prefix, x, visible):
    """x [B, T, D] after its norm; visible [B, T, T] true where a query may see a key."""
    B, T, _ = x.shape
    H, d_nope, d_rope = m["num_attention_heads"], m["qk_nope_head_dim"], m["qk_rope_head_dim"]
    r, d_v, eps = m["kv_lora_rank"], m["v_head_dim"], m["rms_norm_eps"]

    def w(name):
        return params[prefix + name + ".weight"]

    if m["q_lora_rank"]:
        q = rms_norm(x @ w("q_a_proj").T, w("q_a_layernorm"), eps) @ w("q_b_proj").T
    else:
        q = x @ w("q_proj").T
    q = q.view(B, T, H, d_nope + d_rope)
    latent = x @ w("kv_a_proj_with_mqa").T
    kv = rms_norm(latent[..., :r], w("kv_a_layernorm"), eps) @ w("kv_b_proj").T
    kv = kv.view(B, T, H, d_nope + d_v)

    freq, yarn_scale = rope_frequencies(m)
    q_pe = rotate(q[..., d_nope:], freq)
    k_pe = rotate(latent[..., None, r:], freq)
    score = torch.einsum("bthd,bshd->bhts", q[..., :d_nope], kv[..., :d_nope])
    score = score + torch.einsum("bthd,bsd->bhts", q_pe, k_pe[:, :, 0])
    score = score * ((d_nope + d_rope) ** -0.5 * yarn_scale)
    score = score.masked_fill(~visible[:, None], -math.inf)
    out = torch.einsum("bhts,bshd->bthd", score.softmax(-1), kv[..., d_nope:])
    return out.reshape(B, T, H * d_v) @ w("o_proj").T


def swiglu(x, gate, up, down):
    return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def choose(m, score, bias):
    """Experts [N, K] in ascending order, and the smallest margin by which any choice was made."""
    E, K, G = m["n_routed_experts"], m["num_experts_per_tok"], m["n_group"]
    c = score.detach() + (bias if bias is not None else 0.0)
    margin = math.inf
    if m["topk_method"] == "noaux_tc" and G > 1:
        group = c.view(-1, G, E // G).sort(-1, descending=True).values[..., :2].sum(-1)
        best = group.sort(-1, descending=True)
        kept = m["topk_group"]
        margin = (best.values[:, kept - 1] - best.values[:, kept]).min().item()
        masked = torch.ones_like(group, dtype=torch.bool).scatter(1, best.indices[:, :kept], False)
        c = c.masked_fill(masked.repeat_interleave(E // G, 1), -math.inf)
    best = c.sort(-1, descending=True)
    margin = min(margin, (best.values[:, K - 1] - best.values[:, K]).min().item())
    return best.indices[:, :K].sort(-1).values, margin


def moe(m, params, prefix, x, bias, trace):
    """x [B, T, D] after its norm. trace gets the routing and the unweighted balance loss."""
    B, T, D = x.shape
    E, K = m["n_routed_experts"], m["num_experts_per_tok"]
    x = x.reshape(B * T, D)
    logits = x @ params[prefix + "gate.weight"].T
    score = logits.sigmoid() if m["scoring_func"] == "sigmoid" else logits.softmax(-1)
    expert, margin = choose(m, score, bias)
    weight = score.gather(1, expert)
    if m["norm_topk_prob"]:
        weight = weight / (weight.sum(-1, keepdim=True) + 1e-20)
    weight = weight * m["routed_scaling_factor"]

    shared, routed = prefix + "shared_experts.", prefix + "experts."
    names = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")
    out = swiglu(x, *(params[shared + n] for n in names))
    for e in range(E):
        token, slot = torch.where(expert == e)
        y = swiglu(x[token], *(params[routed + n][e] for n in names))
        out = out.index_add(0, token, y * weight[token, slot, None])

    top = score.detach().sort(-1, descending=True)
    margin = min(margin, (top.values[:, K - 1] - top.values[:, K]).min().item())
    chosen = torch.zeros_like(score).scatter(1, top.indices[:, :K], 1.0).view(B, T, E)
    f = chosen.sum(1) * (E / (K * T))
    P = (score / score.sum(-1, keepdim=True)).view(B, T, E).mean(1)
    trace.append({"expert": expert, "weight": weight.detach(), "margin": margin,
                  "balance": (f * P).sum(-1).mean()})
    return out.view(B, T, D)


def block(m, params, layer, h, visible, biases, trace):
    p, eps = f"model.layers.{layer}.", m["rms_norm_eps"]
    x = rms_norm(h, params[p + "input_layernorm.weight"], eps)
    h = h + attention(m, params, p + "self_attn.", x, visible)
    x = rms_norm(h, params[p + "post_attention_layernorm.weight"], eps)
    if layer < m["first_k_dense_replace"]:
        names = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")
        return h + swiglu(x, *(params[p + "mlp." + n] for n in names))
    return h + moe(m, params, p + "mlp.", x, biases.get(layer), trace)


def mean_loss(logits, token, document, depth):
    """Cross entropy of position t predicting token t + 1 + depth of the window, over the positions
    where that token exists and lies in the same document; also how many those are."""
    B, T, V = logits.shape
    t = torch.arange(T)
    target = t + 1 + depth
    inside = (target <= T).expand(B, T)
    target = target.clamp(max=T)
    valid = inside & (document[:, target] == document[:, t])
    log_p = logits.log_softmax(-1).gather(-1, token[:, target].long()[..., None])[..., 0]
    return -log_p[valid].sum() / valid.sum(), int(valid.sum())


def forward(m, params, biases, token, doc_start=None, mtp_weight=0.0, balance_alpha=0.0):
    """token [B, T + 1]. doc_start [B, T + 1] or None: no document mask. Everything is a mean over
    the batch, so it does not depend on how the batch is cut."""
    B, T = token.shape[0], token.shape[1] - 1
    L, depth_all = m["num_hidden_layers"], m["num_nextn_predict_layers"]
    document = torch.zeros_like(token) if doc_start is None else doc_start
    t = torch.arange(T)
    visible = (t[None, :] <= t[:, None]) & (t[None, :] >= document[:, :T, None])
    embed, head, eps = params["model.embed_tokens.weight"], params["lm_head.weight"], 1e-6
    assert m["rms_norm_eps"] == eps
    trace = []

    h = embed[token[:, :T].long()]
    for layer in range(L):
        h = block(m, params, layer, h, visible, biases, trace)
    normed = rms_norm(h, params["model.norm.weight"], eps)
    logits = normed @ head.T
    main, n_main = mean_loss(logits, token, document, 0)

    feed = normed if m.get("mtp_hidden", "normed") == "normed" else h
    mtp, n_mtp = [], []
    for k in range(1, depth_all + 1):
        p = f"model.layers.{L + k - 1}."
        ahead = (t + k).clamp(max=T)
        there = (t + k <= T) & (document[:, ahead] == document[:, t])
        e = embed[token[:, ahead].long()] * there[..., None]
        x = torch.cat((rms_norm(e, params[p + "enorm.weight"], eps),
                       rms_norm(feed, params[p + "hnorm.weight"], eps)), -1)
        h = block(m, params, L + k - 1, x @ params[p + "eh_proj.weight"].T, visible, biases, trace)
        normed = rms_norm(h, params[p + "shared_head.norm.weight"], eps)
        loss, n = mean_loss(normed @ head.T, token, document, k)
        mtp.append(loss)
        n_mtp.append(n)
        feed = normed if m.get("mtp_hidden", "normed") == "normed" else h

    balance = sum(layer["balance"] for layer in trace) * balance_alpha
    loss = main + balance
    if depth_all:
        loss = loss + mtp_weight / depth_all * sum(mtp)
    return {"loss": loss, "main_loss": main, "mtp_loss": mtp, "balance_loss": balance,
            "n_targets": [n_main] + n_mtp, "logits": logits.detach(), "routing": trace}
