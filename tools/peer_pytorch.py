#!/usr/bin/env python3
"""Training speed of Hugging Face DeepseekV3ForCausalLM on the CPUs of this machine; see bench.sh.

Trains the model of a dsv3 model file on random tokens: fused AdamW, clip 1.0, full logits, without
MTP and balance loss. Needs PyTorch and transformers from PyPI. Prints "first step" when that is
done, then one line: tokens a second (median of the steps after two to warm up), the most memory in
use (MiB), and the version.
"""
import argparse
import resource
import statistics
import time

import torch
import yaml
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

WARM_UP = 2


def build(path, sequence_length, experts):
    keys = yaml.safe_load(open(path, encoding="utf-8"))["model"]
    for ours in ("num_nextn_predict_layers", "scoring_func", "topk_method", "mtp_hidden"):
        keys.pop(ours, None)
    config = DeepseekV3Config(**keys, num_key_value_heads=keys["num_attention_heads"],
                              max_position_embeddings=sequence_length, tie_word_embeddings=False,
                              use_cache=False, attn_implementation="sdpa",
                              experts_implementation=experts)
    return DeepseekV3ForCausalLM(config).train()


def train(model, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    forward = torch.compile(model) if args.compile else model
    seconds = []
    for step in range(args.steps + WARM_UP):
        ids = torch.randint(0, model.config.vocab_size, (args.sequences, args.sequence_length))
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "autocast"):
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
        if step == 0:
            print("first step", flush=True)
    return statistics.median(seconds[WARM_UP:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="MODEL.yaml of dsv3")
    parser.add_argument("sequence_length", type=int)
    parser.add_argument("sequences", type=int, help="a step")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="f32", choices=["f32", "autocast"])
    parser.add_argument("--experts", default="grouped_mm", help="grouped_mm, batched_mm, eager")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    second = train(build(args.model, args.sequence_length, args.experts), args)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"tok_s {args.sequences * args.sequence_length / second:.1f} "
          f"peak_mib {peak_mib:.0f} torch {torch.__version__}")


if __name__ == "__main__":
    main()
