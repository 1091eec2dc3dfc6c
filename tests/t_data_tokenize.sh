#!/bin/sh
#TEST timeout=60
# dsv3-tokenize and dsv3-bigram: what text becomes, how it is cut, what they refuse; and that `zstd`
# and `od` alone read the ids.
set -u
T=$DSV3_BUILD/dsv3-tokenize
made=${DSV3_TEST_TMP:-} dir=${DSV3_TEST_TMP:-$(mktemp -d)}
n_failed=0

# check WHAT FOUND EXPECTED
check() {
    [ "$2" = "$3" ] && return
    echo "$1: found '$2', expected '$3'"
    n_failed=$((n_failed + 1))
}
# The ids of a shard, on one line.
ids() {
    zstd -dcq "$1" | od -An -v -tu2 -w65536 | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
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
mkdir -p text/sub text/.git
printf 'b\n' >text/b.txt
printf 'ac' >text/a.c
printf 'sub' >text/sub/x
printf 'a2' >text/a2
: >text/empty
printf 'no' >text/.git/x

# Files of a directory in the order of their bytes, each a document, empty and hidden ones none.
"$T" --out dir.tok.zst text >/dev/null
check 'directory' "$(ids dir.tok.zst)" '97 99 256 97 50 256 98 10 256 115 117 98 256'
check 'no other file' "$(ls)" "dir.tok.zst
text"

# A separator counts as a whole line only, also without newline at the end; the text is kept.
printf 'one\n--\n-\n--x\n--\n\n--\n--\ntwo\n--' | "$T" --out sep.tok.zst --separator -- >/dev/null
check 'separator' "$(ids sep.tok.zst)" \
    '111 110 101 10 256 45 10 45 45 120 10 256 10 256 116 119 111 10 256'
printf 'a\n\nb\n-' | "$T" --out blank.tok.zst --separator '' >/dev/null
check 'blank line' "$(ids blank.tok.zst)" '97 10 256 98 10 45 256'

# All bytes, more than one buffer of them, from standard input and back.
seq 1 200000 >numbers
"$T" --out numbers.tok.zst numbers >/dev/null
zstd -dcq numbers.tok.zst | od -An -v -tu2 -w2 | awk '$1 < 256 { printf "%c", $1 }' >back
cmp numbers back || check 'numbers' different same
"$T" --out parts.tok.zst --shard-tokens 500000 <numbers >/dev/null
check 'shards' "$(echo parts*)" 'parts-00000.tok.zst parts-00001.tok.zst parts-00002.tok.zst'
check 'the same ids' "$(for s in parts-*; do zstd -dcq "$s"; done | cksum)" \
    "$(zstd -dcq numbers.tok.zst | cksum)"
check 'verify' "$("$T" --verify parts-* | sed -n 's/.*shards: \(.*\), fing.*/\1/p')" \
    '1288896 tokens, 1 document'
"$T" --out parts.tok.zst --shard-tokens 1000000 --force <numbers >/dev/null
check 'old shards go' "$(echo parts*)" 'parts-00000.tok.zst parts-00001.tok.zst'

# The held-out part: after a line; between documents; nothing is lost.
"$T" --out t.tok.zst --heldout h.tok.zst --heldout-fraction 0.5 --force numbers >/dev/null
check 'cut after a line' "$(ids h.tok.zst | cut -d' ' -f1-7)" '49 48 55 57 51 56 10'
check 'nothing lost' "$(for s in t h; do zstd -dcq "$s.tok.zst"; done | wc -c)" $((2 * 1288897))
printf '1111\n|\n2222\n|\n3333\n' |
    "$T" --out t.tok.zst --heldout h.tok.zst --heldout-fraction 0.3 --separator '|' --force \
        >/dev/null
check 'cut between documents' "$(ids h.tok.zst)" '51 51 51 51 10 256'

# The bigram entropy of a text in which every byte follows from the one before is nearly 0.
yes abcdefg | head -n 100000 >sure
"$T" --out t.tok.zst --heldout h.tok.zst --force sure >/dev/null
entropy=$("$DSV3_BUILD/dsv3-bigram" t.tok.zst h.tok.zst 2>/dev/null)
check 'bigram of a sure text' "$(echo "$entropy" | awk '{ print ($1 >= 0 && $1 < 0.01) }')" 1
# One of two bytes by chance, a line end, and so on: ln 2 at every second place, as the line ends
# are sure.
awk 'BEGIN { for (i = 0; i < 60000; i++) { x = (x * 1103515245 + 12345) % 2147483648
    print (x > 1073741824) ? "a" : "b" } }' >coin
"$T" --out t.tok.zst --heldout h.tok.zst --force coin >/dev/null
entropy=$("$DSV3_BUILD/dsv3-bigram" t.tok.zst h.tok.zst 2>/dev/null)
# 6000 bytes held out: the mean is ln 2 / 2 = 0.347 within a few parts in a thousand.
near=$(echo "$entropy" | awk '{ print ($1 > 0.34 && $1 < 0.355) }')
check "bigram of a coin, $entropy" "$near" 1

# What it refuses.
check 'no --out' "$(refuses '--out is missing' "$T" text)" 64
check 'bad name' "$(refuses 'does not end in .tok.zst' "$T" --out x.zst text)" 64
check 'bad option' "$(refuses 'unknown option --sharp' "$T" --out x.tok.zst --sharp text)" 64
check 'bad fraction' "$(refuses 'between 0' "$T" --out x.tok.zst --heldout-fraction 1 text)" 64
check 'bad number' "$(refuses 'not a number' "$T" --out x.tok.zst --vocab 200 text)" 64
check 'no file' "$(refuses 'No such file' "$T" --out x.tok.zst none)" 66
check 'no text' "$(refuses 'text/empty: 0 tokens found' "$T" --out x.tok.zst text/empty)" 65
check 'no cut' "$(refuses 'text/a.c: the text cannot be cut' \
    "$T" --out x.tok.zst --heldout y.tok.zst text/a.c)" 65
check 'exists' "$(refuses '^fatal dir.tok.zst exists; --force' "$T" --out dir.tok.zst text)" 74
check 'no directory' "$(refuses 'Not a directory' "$T" --out numbers/x.tok.zst text)" 74
ln -s /dev/full x.tok.zst.tmp
check 'full disk' "$(refuses 'No space' "$T" --out x.tok.zst numbers)" 74
check 'nothing half-made' "$(echo *.tmp [xy].tok*)" '*.tmp [xy].tok*'
check 'verify: cut' "$(head -c 2000 dir.tok.zst | head -c -3 >cut.tok.zst
    refuses 'expected' "$T" --verify cut.tok.zst)" 65
mkfifo fifo # opening one waits for its writer, for ever if there is none
for command in '--out x.tok.zst fifo' '--out x.tok.zst --tokenizer fifo numbers' '--verify fifo'; do
    check "$command" "$(refuses 'fifo: .*not a regular file' timeout 20 "$T" $command)" 66
done
check 'verify: none' "$(refuses 'No such file' "$T" --verify none.tok.zst)" 66
check 'output lost' "$("$T" --verify dir.tok.zst 2>/dev/null >/dev/full || echo $?
    "$T" --decode numbers.tok.zst 2>/dev/null >/dev/full || echo $?)" '74
74'
check 'bigram usage' "$(refuses 'TRAIN and HELDOUT' "$DSV3_BUILD/dsv3-bigram" t.tok.zst)" 64

[ -n "$made" ] || rm -rf "$dir"
[ $n_failed -eq 0 ]
