"""
init.py - starting values of the golden models, from the formulas in src/base/rng.h, written a
second time in numpy so that no weights need to be stored: the C side makes the same numbers.

    matrix  NAME   initializer_range * normal(key(seed, NAME), i)
    gain    NAME   1 + 0.1 * normal(key(seed, NAME "#gain"), i), the product rounded to F32 first
    bias    NAME   0.05 * normal(key(seed, NAME), i)          (the router's selection bias)
    tokens         rng_u64(key(seed, "tokens"), i) % vocab_size

i counts elements in row-major order of the whole tensor; an expert tensor is [E, out, in].
"""

import numpy as np
import xxhash

U64 = np.uint64


def mix(x):
    x = x ^ (x >> U64(30))
    x = x * U64(0xBF58476D1CE4E5B9)
    x = x ^ (x >> U64(27))
    x = x * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


def key(seed, name):
    hashed = xxhash.xxh64(name.encode(), seed=0).intdigest()
    return mix(np.array([seed ^ hashed], dtype=U64))[0]


def bits(k, index):
    counter = (index + U64(1)) * U64(0x9E3779B97F4A7C15) + k
    return mix(mix(counter) ^ k)


def normal(k, n, std):
    i = np.arange(n, dtype=U64)
    u = bits(k, i // U64(2))
    r = std * np.sqrt(-2.0 * np.log(((u >> U64(32)).astype(np.float64) + 1.0) / 2.0**32))
    a = 2.0 * np.pi * ((u & U64(0xFFFFFFFF)).astype(np.float64) / 2.0**32)
    return np.where(i % U64(2) == 0, r * np.cos(a), r * np.sin(a)).astype(np.float32)


def weight(seed, name, shape, std):
    """Matrix or gain, as the number of dimensions says."""
    n = int(np.prod(shape))
    if len(shape) == 1:
        return np.float32(1.0) + normal(key(seed, name + "#gain"), n, 0.1)
    return normal(key(seed, name), n, std).reshape(shape)


def router_bias(seed, layer, n_experts):
    name = f"model.layers.{layer}.mlp.gate.e_score_correction_bias"
    return normal(key(seed, name), n_experts, 0.05)


def tokens(seed, shape, vocab_size):
    i = np.arange(int(np.prod(shape)), dtype=U64)
    return (bits(key(seed, "tokens"), i) % U64(vocab_size)).astype(np.int32).reshape(shape)
