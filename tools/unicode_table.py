#!/usr/bin/env python3
"""Makes src/data/unicode_table.c, the general category of every code point, and
src/data/unicode_nfc_table.c, canonical decompositions and combining classes: as the regular
expressions and the normalizers of the PyPI package `tokenizers` see them, since the ids of
dsv3-tokenize must be theirs. The two are of different versions of Unicode there. Needs only that
package; the version used stands in the tables' first comments.

usage: python3 tools/unicode_table.py categories >src/data/unicode_table.c
       python3 tools/unicode_table.py nfc >src/data/unicode_nfc_table.c
"""
import sys
import textwrap
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers
from tokenizers.pre_tokenizers import Split

# In the order of enum unicode_category; Cn is what is in none of them.
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp "
              "Cc Cf Co").split()
N_CODE_POINTS, N_AT_ONCE, N_IN_LINE, N_COLUMNS = 0x110000, 4096, 10, 96
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


def head(name, what):
    print("/* %s - %s; made by tools/unicode_table.py with tokenizers %s. */" %
          (name, what, tokenizers.__version__))
    print('#include "data/unicode.h"')


def table(kind, name, rows, n_in_line=None):
    """n_in_line None: as many as fit."""
    print("\n// clang-format off")
    print("const %s[] = {" % kind)
    lines = ([", ".join(rows[i:i + n_in_line]) for i in range(0, len(rows), n_in_line)]
             if n_in_line else textwrap.wrap(", ".join(rows) + ",", N_COLUMNS))
    for line in lines:
        print("    " + line.rstrip(",").replace(" ", "") + ",")
    print("};")
    print("// clang-format on")
    print("const int n_%s = (int)(sizeof %s / sizeof *%s);" % (name, name, name))


def categories():
    category = bytearray(N_CODE_POINTS)
    for number, name in enumerate(CATEGORIES, 1):
        for code_point in members(r"\p{%s}" % name):
            assert category[code_point] == 0, "two categories"
            category[code_point] = number
    runs = [c << 5 | category[c] for c in range(N_CODE_POINTS)
            if c == 0 or category[c] != category[c - 1]]
    head("unicode_table.c", "general categories")
    table("uint32_t unicode_runs", "unicode_runs", list(map(str, runs)), N_IN_LINE)


NFC, NFD = normalizers.NFC().normalize_str, normalizers.NFD().normalize_str


def decompositions():
    """[character, first, second or 0, whether the two make the character again]; a first may have a
    decomposition itself. Hangul syllables, which are computed, aside."""
    whole = {c: NFD(chr(c)) for c in range(N_CODE_POINTS)
             if c not in SURROGATES and not 0xAC00 <= c < 0xD7A4}
    whole = {c: d for c, d in whole.items() if d != chr(c)}
    # of what decomposes to a text the character that it composes to, if there is one, comes last
    known = {d: c for c, d in sorted(whole.items(), key=lambda x: NFC(x[1]) == chr(x[0]))}
    rows = []
    for c, d in whole.items():
        first = ord(d[0]) if len(d) <= 2 else known[d[:-1]]
        rows.append((c, first, ord(d[-1]) if len(d) > 1 else 0, NFC(d) == chr(c)))
    return rows


def combining(decomposed):
    """Class of every code point. Which are not 0 and their order is found by what moves behind
    what; the numbers are those of characters that have been there for long."""
    by_class = {}
    for c in range(0x300, 0x20000):
        number = unicodedata.combining(chr(c))
        if number and c not in decomposed and NFD(chr(c) + "\u0334") != chr(c) + "\u0334":
            by_class.setdefault(number, chr(c))
    by_class[1] = "\u0334"

    def moves(first, second):
        return first != second and NFD("a" + first + second) == "a" + second + first

    found = bytearray(N_CODE_POINTS)
    for c in range(0x300, N_CODE_POINTS):
        if c in SURROGATES or c in decomposed or 0xAC00 <= c < 0xD7A4:
            continue
        if moves("\u0345", chr(c)) or moves(chr(c), "\u0334"):
            equal = [n for n, r in by_class.items()
                     if not moves(r, chr(c)) and not moves(chr(c), r)]
            assert len(equal) == 1, (c, equal)
            found[c] = equal[0]
    for c, d in decomposed.items():
        found[c] = found[ord(d[0])]
    return found


def nfc():
    rows = decompositions()
    classes = combining({row[0]: NFD(chr(row[0])) for row in rows})
    runs = [c << 8 | classes[c] for c in range(N_CODE_POINTS)
            if c == 0 or classes[c] != classes[c - 1]]
    head("unicode_nfc_table.c", "composition")
    table("struct unicode_pair unicode_pairs", "unicode_pairs",
          ["{%d,%d,%d,%d}" % row for row in rows])
    table("uint32_t unicode_combining", "unicode_combining", list(map(str, runs)), N_IN_LINE)


{"categories": categories, "nfc": nfc}[sys.argv[1]]()
