#!/usr/bin/env python3
"""Tokens/s of Hugging Face DeepseekV3ForCausalLM on the CPUs of this machine; see bench-peer.sh.

usage: peer_pytorch.py MODEL.yaml SEQUENCE_LENGTH SEQUENCES STEPS THREADS

Trains the model of a dsv3 model file on random tokens: F32, eager, fused AdamW, clip 1.0, without
MTP and balance loss. Each way transformers has to run the experts is measured; the fastest counts.
Needs PyTorch and transformers from PyPI.
"""
import statistics
import sys
import time

import torch
import yaml
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

WARM_UP = 2


def tokens_a_second(keys, sequence_length, sequences, steps, experts):
    torch.manual_seed(0)
    config = DeepseekV3Config(**keys, num_key_value_heads=keys["num_attention_heads"],
                              use_cache=False, attn_implementation="sdpa",
                              experts_implementation=experts)
    model = DeepseekV3ForCausalLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, fused=True)
    seconds = []
    for _ in range(steps + WARM_UP):
        ids = torch.randint(0, config.vocab_size, (sequences, sequence_length))
        start = time.perf_counter()
        model(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
    return sequences * sequence_length / statistics.median(seconds[WARM_UP:])


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    keys = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))["model"]
    for ours in ("num_nextn_predict_layers", "scoring_func", "topk_method", "mtp_hidden"):
        keys.pop(ours, None)
    sequence_length, sequences, steps, threads = map(int, sys.argv[2:])
    torch.set_num_threads(threads)
    best, how = max((tokens_a_second(keys, sequence_length, sequences, steps, experts), experts)
                    for experts in ("eager", "grouped_mm"))
    print(f"{best:.1f} torch {torch.__version__} experts {how}")


if __name__ == "__main__":
    main()
