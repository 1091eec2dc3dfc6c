#!/usr/bin/env python3
"""Makes src/data/unicode_table.c: the general category of every code point, as the regular
expressions of the PyPI package `tokenizers` see it, since the ids of dsv3-tokenize must be theirs.
Needs only that package; the version used stands in the table's first comment.

usage: python3 tools/unicode_table.py >src/data/unicode_table.c
"""
import tokenizers
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

# In the order of enum unicode_category; Cn is what is in none of them.
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp "
              "Cc Cf Co").split()
N_CODE_POINTS, N_AT_ONCE, N_IN_LINE = 0x110000, 4096, 10
SURROGATES = range(0xD800, 0xE000)  # no characters: no text holds them


def members(pattern):
    """The code points that the pattern matches: Split removes them from a text of all."""
    split = Split(Regex(pattern), "removed")
    found = []
    for first in range(0, N_CODE_POINTS, N_AT_ONCE):
        part = [c for c in range(first, first + N_AT_ONCE) if c not in SURROGATES]
        left = set()
        for _, (begin, end) in split.pre_tokenize_str("".join(map(chr, part))):
            left.update(range(begin, end))
        found += [c for i, c in enumerate(part) if i not in left]
    return found


def main():
    category = bytearray(N_CODE_POINTS)
    for number, name in enumerate(CATEGORIES, 1):
        for code_point in members(r"\p{%s}" % name):
            assert category[code_point] == 0, "two categories"
            category[code_point] = number
    runs = [c << 5 | category[c] for c in range(N_CODE_POINTS)
            if c == 0 or category[c] != category[c - 1]]
    print("/* unicode_table.c - general categories; made by tools/unicode_table.py with tokenizers "
          "%s. */" % tokenizers.__version__)
    print('#include "data/unicode.h"\n')
    print("// clang-format off")
    print("const uint32_t unicode_runs[] = {")
    for i in range(0, len(runs), N_IN_LINE):
        print("    " + ",".join(map(str, runs[i:i + N_IN_LINE])) + ",")
    print("};")
    print("// clang-format on")
    print("const int n_unicode_runs = (int)(sizeof unicode_runs / sizeof *unicode_runs);")


main()
