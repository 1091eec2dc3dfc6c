#!/usr/bin/env python3
"""The ids that transformers' greedy generate() makes of the models beside this file.

usage: python3 tests/golden/hf/generate.py         (torch, transformers)

Writes MODEL/generated.txt: a line of prompt ids, a line of the ids that follow. A model of random
weights: between the two best logits lie at least `margin`, far more than F32 rounding moves them.
"""
import pathlib

import torch
import transformers

HERE = pathlib.Path(__file__).parent
NEW, MARGIN = 24, 1e-4


def generate(name):
    model = transformers.AutoModelForCausalLM.from_pretrained(HERE / name, dtype=torch.float32)
    model.eval()
    ids = [(7 * i * i + 3 * i + 1) % model.config.vocab_size for i in range(9)]
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), max_new_tokens=NEW, do_sample=False,
                             eos_token_id=None, pad_token_id=0)[0].tolist()
        logits = model(torch.tensor([out])).logits[0]
    best = logits[len(ids) - 1:-1].topk(2).values
    margin = float((best[:, 0] - best[:, 1]).min())
    assert margin > MARGIN, f"{name}: a margin of {margin}"
    text = "\n".join(",".join(map(str, part)) for part in (ids, out[len(ids):]))
    (HERE / name / "generated.txt").write_text(text + "\n")
    print(f"{name}: margin {margin:.2e}")


if __name__ == "__main__":
    for model in ("v3", "v3_eps", "v2"):
        generate(model)
