#!/usr/bin/env python3
"""What the TensorBoard package reads in the event files of a directory, a line a value.

usage: python3 tests/golden/tensorboard/read.py DIRECTORY         (tensorboard)
"""
import sys

from tensorboard.backend.event_processing import event_accumulator as ea

events = ea.EventAccumulator(sys.argv[1], size_guidance={ea.SCALARS: 0, ea.TENSORS: 0})
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    for e in events.Scalars(tag):
        print(f"{tag} {e.step} {e.value:.7g}")
for tag in sorted(events.Tags()["tensors"]):
    for e in events.Tensors(tag):
        print(f"{tag} {e.step} {e.tensor_proto.string_val[0].decode()!r}")
