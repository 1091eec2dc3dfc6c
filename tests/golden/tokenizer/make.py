#!/usr/bin/env python3
"""Makes the texts, the small tokenizers and the ids of this directory; see README.md.

usage: python3 tests/golden/tokenizer/make.py MOBY_DICK.txt [DEEPSEEK_V3_TOKENIZER.json]

Needs the PyPI package tokenizers. Without the second file the ids that it gives are left as they
are.
"""
import json
import os
import random
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = ("english", "code", "mixed", "marks")
TRAINED = 3  # of them
ENGLISH_CHARS = 6000

# The way DeepSeek-V3 cuts: digits by threes, runs of Chinese and Japanese, words, marks, spaces.
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    r"|\s*[" "\r\n" r"]+|\s+(?!\S)|\s+"]
# Upper and lower case apart, contractions in any case: groups and two-letter categories.
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Possessive repetitions, a set in any case; and what Qwen's files have behind NFC.
NANO = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+")
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")

CODE = '''\
#include <stdio.h>
#define SQUARE(x) ((x) * (x))
static const char *const names[] = {"a\\tb", "\\"quoted\\"", "caf\u00e9"};

int main(int argc, char **argv)
{
\tdouble sum = 0.0;   // tabs here,    runs of spaces there
\tfor (int i = 0; i < argc && argv[i] != NULL; i++) {
\t\tif (i % 16 == 0xF) continue;
\t\tsum += SQUARE(i) / 3.14159e-10;
\t}
\tprintf("%5.2f|%s\\n", sum, names[argc % 3]);
\treturn sum > 1e9 ? -1 : 0;
}

def fibonacci(n: int) -> list[int]:
    """The first n numbers; n == 0 gives []."""
    a, b, out = 0, 1, []
    while len(out) < n:
        out.append(a)
        a, b = b, a + b

    return out  # noqa: E501


class HTTPServer2(BaseServer):
    URL = "https://example.org/~user/path?q=1&r=%20#top"
    x_y__z = lambda self, *args, **kw: (args[::-1], {**kw, 'k': [1, 2, (3,)]})

all: $(OBJ)
\t$(CC) -o $@ $^ $(LIBS) 2>&1 | tee build.log
SELECT t.id, COUNT(*) FROM t WHERE t.name <> 'O''Brien' GROUP BY 1;
<div class="a b"><p>1 &lt; 2</p><!-- end --></div>
{"key": [true, null, -1.5e+10, "\\u00e9"]}\r
\r
x<-c(1,2);y=x[x>1]&&!z||w;;;a->b::c<d>>e\r
'''

MIXED = [
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u8d70\u8d70\u3002",
    "\u6771\u4eac\u90fd\u306b\u884c\u304d\u307e\u3059\u3002\u30b3\u30fc\u30d2\u30fc\u3092\uff12\u676f\u3002",
    "\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc785\ub2c8\ub2e4. \u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u0661\u0662\u0663\u0664 \u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0967\u0968\u0969\u096a\u096b \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001f44d\U0001f3fd\U0001f1e9\U0001f1ea!",
    "e\u0301a\u0300 \u00e9\u00e0 \u01c5 \u00df\u0130 \ufb01 \u2167 \u00bd\u00b2 \U0001d49c\U0001d7d9 \u212a\u017f",
    "a\u00a0b\u3000c\u2003d\u2028e\u2029f\u0085g\u200bh\ufeffi\u1680j\u00adk",
    "  two   three    four\t\ttabs \t mixed \r\n\r\n\n\n   \n x\r\r y \n",
    "x \u0085\u0085\u0085y \u0084\u0084\u0084 z\u2028\u2028 \u3000\u3000w \u200b\u200b v",
    "1 12 123 1234 12345 1,234,567.89 3rd 0x1F 2024-08-22T10:00",
    "I'll we're they'VE it'S don't O'Reilly 'tis '\u017f he'D'm 'RE",
    "<|begin|>text<|end|><|end<|end|> <|fim|><|fim|>x<|en <|begin|><|pad|>fim-tool fim-toolbox",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "================================----------------________****\n\n##########",
    "\u0000\u0001\u007f\ue000\U000f0000\U0010ffff\u0378\ufffd \u2602\u2603\u20ac\u00a3\u221e\u222b\u2200",
]


MARKS = [
    "e\u0301a\u0300o\u0302\u0323u\u031b\u0309 Vie\u0323\u0302t Nam, a\u0323\u0302 a\u0302\u0323",
    "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 \uac00\u11a8 \uac01\u11a8 \u1100\u1100\u1161\u11a7",
    "\u0928\u093c \u0915\u093c \u0958 \u09c7\u09be \u0bc6\u0bbe \u0d46\u0d3e \u0f71\u0f72\u0f74 \u1025\u102e",
    "\u212b \u2126 \u212a \uf900\ufa1e \U0002f800 \u0340\u0344 \u1d15e \U0001d15e \ufb2c \ufb1f \u2adc",
    "a\u0345\u0301\u0323\u0334\u0316 q\u0307\u0323\u0307 \u0301\u0323x \u0344\u0345 \u03b1\u0313\u0301\u0345",
    "a\u05b0\u05bc\u05c1 \u0622\u0627\u0653\u0655 \u064b\u0651\u0654 \u304b\u3099 \u30cf\u309a \u3099",
    "e<|end|>\u0301 e\u200d\u0301 e \u0301 e\n\u0301 fim-too\u0301l fim-tool\u0301 \u07fd\u0301\u0316 \U00011938\u0301",
]


def marks_text():
    """Characters apart that compose, in and out of order, and what is thrown together of them."""
    rnd = random.Random(2)
    chars = [c for line in MARKS for c in line if c != " "]
    text = "\n".join(MARKS) + "\n"
    for _ in range(300):
        text += "".join(rnd.choice(chars) for _ in range(rnd.randrange(1, 5)))
        text += rnd.choice(["", "", " ", "e", "\n"])
    return text


def mixed_text():
    """The lines above, and the same pieces and any characters thrown together."""
    rnd = random.Random(1)
    pieces = [c for line in MIXED for c in line.split(" ")] + [" ", "  ", "\n", "\r\n", "\t"]
    text = "\n".join(MIXED) + "\n"
    for _ in range(400):
        kind = rnd.random()
        if kind < 0.7:
            text += rnd.choice(pieces)
        elif kind < 0.8:
            text += rnd.choice(" \n\t\r1aA'")
        else:
            first, last = rnd.choice([(0x20, 0x250), (0x250, 0x3100), (0x3100, 0xd800),
                                      (0xe000, 0x20000), (0xe0000, 0x110000)])
            text += chr(rnd.randrange(first, last))
    return text


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def train(steps, vocab, files, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(files, trainers.BpeTrainer(
        vocab_size=vocab, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|begin|>", "<|end|>", "<|pad|>"], show_progress=False))
    tokenizer.add_special_tokens(["<|fim|>", "<|end"])
    tokenizer.add_tokens([AddedToken("fim-tool", normalized=True),
                          AddedToken("fim-toolbox", normalized=False)])
    return json.loads(tokenizer.to_str())


def strike_out(tokenizer, n):
    """What is left of a tokenizer without its tokens, merges and added tokens from id n on."""
    cut = json.loads(json.dumps(tokenizer))
    vocab = cut["model"]["vocab"]
    cut["model"]["vocab"] = {t: i for t, i in vocab.items() if i < n}
    pairs = [m.split(" ") if isinstance(m, str) else m for m in cut["model"]["merges"]]
    cut["model"]["merges"] = [m for m in pairs if max(vocab[m[0]], vocab[m[1]],
                                                      vocab[m[0] + m[1]]) < n]
    cut["added_tokens"] = [a for a in cut["added_tokens"] if a["id"] < n]
    return cut


def write(name, text):
    with open(os.path.join(HERE, name), "w", encoding="utf-8", newline="") as out:
        out.write(text)


def write_ids(name, tokenizer, texts):
    encoder = Tokenizer.from_str(json.dumps(tokenizer))
    for which, text in texts.items():
        ids = encoder.encode(text, add_special_tokens=False).ids
        made = encoder.normalizer.normalize_str(text) if encoder.normalizer else text
        # marks.txt has a mark behind an added token, which composes with nothing
        assert which == "marks" or encoder.decode(ids, skip_special_tokens=False) == made, name
        lines = [" ".join(map(str, ids[i:i + 20])) for i in range(0, len(ids), 20)]
        write("%s.%s.ids.txt" % (name, which), "\n".join(lines) + "\n")


def main():
    with open(sys.argv[1], encoding="utf-8") as book:
        texts = {"english": book.read(ENGLISH_CHARS), "code": CODE, "mixed": mixed_text(),
                 "marks": marks_text()}
    for which, text in texts.items():
        write(which + ".txt", text)
    files = [os.path.join(HERE, which + ".txt") for which in TEXTS[:TRAINED]]
    made = {"deepseek": train([split(p) for p in DEEPSEEK] + [byte_level(False)], 900, files),
            "gpt2": train([pre_tokenizers.Digits(individual_digits=True), byte_level(True)], 500,
                          files),
            "cased": train([split(CASED), byte_level(False)], 700, files),
            "nano": train([split(NANO), byte_level(False)], 400, files),
            "qwen": train([split(QWEN), byte_level(False)], 400, files, normalizers.NFC())}
    del made["qwen"]["model"]["type"]
    made["cased"]["model"]["ignore_merges"] = True
    made["gpt2"]["model"]["merges"] = [" ".join(m) for m in made["gpt2"]["model"]["merges"]]
    for name, tokenizer in made.items():
        write(name + ".json", json.dumps(tokenizer, ensure_ascii=False) + "\n")
        write_ids(name, tokenizer, texts)
    write_ids("deepseek-400", strike_out(made["deepseek"], 400), texts)
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as file:
            real = json.load(file)
        write_ids("deepseek-v3", real, texts)
        write_ids("deepseek-v3-8192", strike_out(real, 8192), texts)


main()
