#!/bin/sh
#TEST timeout=60
# dsv3-tokenize with a tokenizer.json: the recorded ids reach the shard, documents end where lines
# of JSON or separators say, packed files are read, text comes back, and what is refused.
set -u
T=$DSV3_BUILD/dsv3-tokenize
golden=$PWD/tests/golden/tokenizer
made=${DSV3_TEST_TMP:-} dir=${DSV3_TEST_TMP:-$(mktemp -d)}
n_failed=0

# check WHAT FOUND EXPECTED
check() {
    [ "$2" = "$3" ] && return
    echo "$1: found '$2', expected '$3'"
    n_failed=$((n_failed + 1))
}
# The ids of a shard, one a line.
ids() {
    zstd -dcq "$1" | od -An -v -tu2 -w2 | tr -d ' '
}
# The exit code of a command that must say WORD on standard error.
refuses() {
    word=$1
    shift
    "$@" >"$dir/said" 2>&1
    code=$?
    grep -q -- "$word" "$dir/said" || check "$*" "$(cat "$dir/said")" "something with '$word'"
    echo $code
}

cd "$dir" || exit 1
bpe="--tokenizer $golden/deepseek.json"

# A file is a document: its ids, then the end token; and text comes back.
for text in english code mixed; do
    "$T" --any-bytes --out $text.tok.zst $bpe --eod '<|end|>' --bos '<|begin|>' \
        "$golden/$text.txt" >/dev/null
    check "$text" "$(ids $text.tok.zst)" \
        "$(echo 0; tr ' ' '\n' <"$golden/deepseek.$text.ids.txt"; echo 1)"
    { printf '<|begin|>'; cat "$golden/$text.txt"; printf '<|end|>'; } >whole
    "$T" --decode $bpe $text.tok.zst | cmp - whole || check "$text back" other same
done
said=$("$T" --verify english.tok.zst |
    sed -n 's/.*, \(u16, vocab.*\), larg.*, \(.*json\).*/\1 \2/p')
check 'header' "$said" 'u16, vocabulary 904 tokenizer deepseek.json'

# Part of the vocabulary.
"$T" --out part.tok.zst $bpe --max-vocab 400 --eod none "$golden/code.txt" >/dev/null
check 'max-vocab' "$(ids part.tok.zst)" "$(tr ' ' '\n' <"$golden/deepseek-400.code.ids.txt")"
"$T" --decode $bpe --max-vocab 400 part.tok.zst | cmp - "$golden/code.txt" ||
    check 'max-vocab back' other same

# Lines of JSON, some of them blank or with an empty text; packed; separators in the text's place.
cat >docs.jsonl <<'JSON'
{"id": 1, "text": "one caf\u00e9\n"}

{"text": "", "id": 2}
{"text": "two \ud83d\ude00 \u0000\n", "more": {"text": "no"}}
JSON
printf '  \t\r\n{"text": "three"}' >>docs.jsonl
zstd -q docs.jsonl
printf 'one café\n--\ntwo 😀 \0\n--\nthree\n--\n' >docs.txt
"$T" --out lines.tok.zst $bpe --eod '<|end|>' --json-key text docs.jsonl.zst >said
check 'documents' "$(cat said)" "lines.tok.zst: $(ids lines.tok.zst | wc -l) tokens, 3 documents"
"$T" --decode $bpe --separator -- lines.tok.zst | cmp - docs.txt || check 'lines back' other same
"$T" --out bytes.tok.zst --json-key text - <docs.jsonl >/dev/null
"$T" --decode --separator -- bytes.tok.zst | cmp - docs.txt || check 'bytes back' other same

# The held-out part is whole documents.
"$T" --out a.tok.zst --heldout b.tok.zst --heldout-fraction 0.3 $bpe --eod '<|end|>' \
    --json-key text docs.jsonl >/dev/null
check 'held out' "$("$T" --decode $bpe b.tok.zst)" 'three<|end|>'

# What it refuses.
json="--out x.tok.zst --json-key text"
check 'which eod' "$(refuses 'which token ends a document' "$T" --out x.tok.zst $bpe docs.txt)" 64
check 'no eod' "$(refuses 'is no added token' "$T" --out x.tok.zst $bpe --eod the docs.txt)" 64
check 'eod cut' "$(refuses 'below --max-vocab' "$T" --out x.tok.zst $bpe --max-vocab 400 \
    --eod '<|fim|>' docs.txt)" 64
check 'eod of bytes' "$(refuses 'need --tokenizer' "$T" --out x.tok.zst --eod x docs.txt)" 64
check 'vocab' "$(refuses 'has 904 ids' "$T" --out x.tok.zst $bpe --eod none --vocab 800 docs.txt)" \
    64
check 'no json' "$(refuses 'docs.txt:1: byte ' "$T" $json docs.txt)" 65
echo '{"text": "a"} {"text": "b"}' >two
check 'two objects' "$(refuses 'two:1: byte ' "$T" $json two)" 65
printf '{"text": "a"}\n{"txt": "b"}\n' >key
check 'no key' "$(refuses 'key:2: no key "text"' "$T" $json key)" 65
printf '{"text": "a"}\n{"text": 7}\n' >number
check 'no text' "$(refuses 'number:2: no text at key' "$T" $json number)" 65
head -c 60 docs.jsonl.zst >cut.zst
check 'cut' "$(refuses 'truncated' "$T" $json cut.zst)" 65
cp docs.txt plain.zst
check 'not packed' "$(refuses 'no zstd' "$T" --out x.tok.zst plain.zst)" 65
check 'nothing half-made' "$(echo x.tok*)" 'x.tok*'
check 'other one' "$(refuses 'made with tokenizer deepseek.json' "$T" --decode lines.tok.zst)" 65
check 'other part' "$(refuses 'made with' "$T" --decode $bpe --max-vocab 400 lines.tok.zst)" 65
check 'decode out' "$(refuses 'needs shards' "$T" --decode --out x.tok.zst)" 64

[ -n "$made" ] || rm -rf "$dir"
[ $n_failed -eq 0 ]
