#!/bin/sh
#TEST timeout=60
# What dsv3-tokenize takes for text: packed files by their first bytes, patterns, CRLF, lines of
# JSON with anything beside the text; what is no text is an error with file and place; and how the
# held-out part is drawn from several files.
set -u
T=$DSV3_BUILD/dsv3-tokenize
. tests/lib_test.sh
set +e
n_failed=0

check() { # WHAT FOUND EXPECTED
    [ "$2" = "$3" ] && return
    echo "$1: found '$2', expected '$3'"
    n_failed=$((n_failed + 1))
}
# back NAME ARGUMENT ...: the documents that become of it, each with a line | behind it; $tmp/said
back() {
    "$T" --force --out "$@" >"$tmp/said" 2>&1 || { cat "$tmp/said"; return; }
    "$T" --decode --separator '|' "$1"
}
# refuses CODE WORD ARGUMENT ...
refuses() {
    code=$1 word=$2
    shift 2
    "$T" --force --out x.tok.zst "$@" >"$tmp/said" 2>&1
    check "$*" "$? $(grep -c -- "$word" "$tmp/said")" "$code 1"
    [ ! -e x.tok.zst ] && [ ! -e x.tok.zst.tmp ] || check "$*" 'a shard' 'none'
}

cd "$tmp" || exit 1

# Packed: whatever the name, several members, from standard input; cut off and altered.
mkdir -p packed/a
seq 1 30000 >numbers
head -n 10000 numbers | gzip >packed/a/1.gz
sed -n '10001,$p' numbers | gzip >>packed/a/1.gz
gzip -c numbers >packed/2
zstd -q -o packed/3.zst numbers
"$T" --out deep/in/p.tok.zst packed >/dev/null # and makes the directories
check 'packed' "$("$T" --decode deep/in/p.tok.zst | cksum)" "$(cat numbers numbers numbers | cksum)"
"$T" --out g.tok.zst <packed/2 >/dev/null
check 'packed input' "$("$T" --decode g.tok.zst | cksum)" "$(cksum <numbers)"
head -c 9000 packed/2 >cut.gz
refuses 65 'cut.gz: truncated: the file ends within a gzip member' cut.gz
{ cat packed/2; echo more; } >behind.gz
refuses 65 'behind.gz: altered or no gzip' behind.gz
cp numbers plain.gz
refuses 65 'plain.gz: truncated, altered or no gzip' plain.gz
printf '\375\067zXZ\000\000' >x.xz
refuses 65 'x.xz: found xz.*xz -dc FILE' x.xz
printf 'BZh91AY&SY....' >notes
refuses 65 'notes: found bzip2' notes
printf 'BZh9 is no bzip2\n' >notes
check 'looks like bzip2' "$(back n.tok.zst notes)" 'BZh9 is no bzip2
|'

# No text: a NUL, noise, UTF-16; some bytes that are not UTF-8 are kept, and said.
printf 'one\n' >text
{ cat text; printf '\211PNG\r\n\032\n\000\000'; } >image
refuses 65 'image: byte 12 is 0, expected text' text image
gzip -c numbers | tail -c +100 | head -c 3000 | tr -d '\000' >noise
refuses 65 'noise: [0-9]* of the first [0-9]* bytes are not UTF-8' noise
printf '\377\376o\000n\000' >wide
refuses 65 'wide: found UTF-16' wide
"$T" --any-bytes --out any.tok.zst image noise >/dev/null 2>&1
check 'any bytes' "$("$T" --decode any.tok.zst | cksum)" "$(cat image noise | cksum)"
{ yes 'é中😀' | head -c 1048590; printf '\303 caf\351 \303'; } >latin # one across a buffer's end
"$T" --out l.tok.zst latin >said 2>&1
check 'some bytes' "$(sed -n 's/^warning //p' said)" \
    '3 bytes that are not UTF-8 kept as they are; the first: latin: byte 1048590'

# A separator with a carriage return, which the text keeps; one that never comes.
printf 'a\r\n--\r\nb\r\n--\rc\n--' >crlf
check 'CRLF' "$(back c.tok.zst --separator -- crlf | od -An -c | tr -d ' \n')" \
    'a\r\n|\nb\r\n--\rc\n|\n'
printf 'a\r\n\r\nb\n' >blank
check 'blank CRLF' "$(back c.tok.zst --separator '' blank | tr -d '\r')" 'a
|
b
|'
back c.tok.zst --separator == crlf >/dev/null
check 'no separator' "$(sed -n 's/^warning //p' said)" \
    'no line of the text is the separator "==": each file is one document'

# JSON: what is not read does no harm.
cat >good.jsonl <<'END'
{"id": 12345678901234567890, "x": [1e999, NaN, {"text": "\ud800 \q"}], "text": "o\u006e\u00e9"}
{"te\u0078t": "\ud83d\ude00\t\"\\\/", "\ud800": null }
{"text": 1, "text": "last"}
END
check 'JSON' "$(back j.tok.zst --json-key text good.jsonl)" 'oné
|
😀	"\/
|
last
|'
# Each of these is bad, for its own reason.
cat >bad.jsonl <<'END'
{"text": "good"}
{"text": "cut
{"text": "\ud800"}
{"text": "\q"}
{"text": 5}
{"txt": "none"}
["text"]
{"text": "a" "b": 1}
{"text": "a", "b": [1}}
{"text": "a"} x
{"text": "a", }
{"text": "good too"}
END
printf '{"text": "\351"}\n{"text": "a\tb"}\n' >>bad.jsonl
refuses 65 'bad.jsonl:2: byte 14: the line ends within a text' --json-key text bad.jsonl
check 'bad lines' "$(back j.tok.zst --json-key text --skip-bad-lines --heldout h.tok.zst \
    --heldout-fraction 0.6 bad.jsonl; cat said | sed -n 's/^warning //p')" 'good
|
12 bad lines left out; the first: bad.jsonl:2: byte 14: the line ends within a text'
refuses 64 'needs --json-key' --skip-bad-lines text

# Patterns; Megatron's prefix.
mkdir many
for i in 1 2 3 4 5 6 7 8 9 10; do echo "document $i" >"many/$i.txt"; done
check 'pattern' "$(back m.tok.zst 'many/[12]*.txt' | tr '\n' ' ')" \
    'document 1 | document 10 | document 2 | '
refuses 66 'many/x\*: no file matches' 'many/x*'
{
    printf 'MMIDIDX\0\0\001\0\0\0\0\0\0\0\010\001\0\0\0\0\0\0\0\002\0\0\0\0\0\0\0\003\0\0\0'
    printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0'
} >pre.idx
printf 'a\0b\0c\0' >pre.bin
check 'prefix' "$("$T" --verify pre; "$T" --decode pre)" "$("$T" --verify pre.bin; echo abc)"

# Held out: of short files some, spread over all of them; of long ones each one's end.
back m.tok.zst --heldout h.tok.zst --heldout-fraction 0.2 many >/dev/null
check 'of short files' "$("$T" --decode --separator '|' h.tok.zst | tr '\n' ' ')" \
    'document 2 | document 7 | '
seq 1 1000 >a.txt
seq 2001 3000 >b.txt
back m.tok.zst --heldout h.tok.zst --heldout-fraction 0.01 a.txt b.txt >/dev/null
check 'of long files' "$("$T" --decode --separator '|' h.tok.zst | tr '\n' ' ')" \
    "$({ seq 992 1000; echo '|'; seq 2991 3000; echo '|'; } | tr '\n' ' ')"
[ $n_failed -eq 0 ]
