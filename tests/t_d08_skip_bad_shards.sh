# data.on_bad_shard: a shard that is broken when the run starts stops it, or is left out on all
#TEST timeout=100 cores=1
# ranks with one line, and the run is that of the other shards. What is found later always stops.
. tests/lib_train.sh
make_run
mkdir "$tmp/shards"
"$DSV3_BUILD/dsv3-tokenize" --out "$tmp/shards/s.tok.zst" --shard-tokens 3000 "$tmp/text" >/dev/null
shard() { echo "$tmp/shards/s-0000$1.tok.zst"; }
# flip NUMBER BYTE: the byte becomes another one.
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$(shard "$1")")
    printf "\\$(printf %o $((byte ^ 16)))" |
        dd of="$(shard "$1")" bs=1 seek="$2" conv=notrunc status=none
}
n=$(ls "$tmp/shards" | wc -l)
[ "$n" -ge 7 ] || fail "only $n shards"
cp -r "$tmp/shards" "$tmp/whole"

truncate -s -3 "$(shard 0)"                   # not a multiple of the ids' width
flip 2 30                                     # the number of tokens, under the header's hash
: >"$(shard 3)"                               # nothing
flip 5 $(($(stat -c %s "$(shard 5)") - 30))   # the seek table: read by one of the ranks only
kept=$(for i in $(seq 0 $((n - 1))); do
    case $i in 0 | 2 | 3 | 5) ;; *) printf '%s,' "$(shard "$i")" ;; esac
done)
kept="data.train=[${kept%,}]"
all="data.heldout=[] train.steps=2 data.train=$tmp/shards"

print_of() { grep -o "\"fingerprints\":{\"train\":\"[0-9a-f]*" "$tmp/$1/metrics.jsonl"; }
# left_out NAME NUMBER...: exactly these shards, each on one line.
left_out() {
    name=$1
    shift
    found=$(grep -o 'warning train data, rank.*left out' "$tmp/$name.out" |
        grep -o 's-0000[0-9]' | sort | tr '\n' ' ')
    [ "$found" = "$(printf 's-0000%d ' "$@")" ] ||
        fail "$name: left out $found: $(cat "$tmp/$name.out")"
}
# stopped CODE WORDS NAME RANKS ...
stopped() {
    want=$1 words=$2 name=$3
    shift 2
    code=0
    train "$@" || code=$?
    [ $code = "$want" ] || fail "$name: exit code $code, expected $want: $(cat "$tmp/$name.out")"
    grep -q "fatal.*$words" "$tmp/$name.out" || fail "$name: $(cat "$tmp/$name.out")"
}

must_train good 4 data.heldout=[] train.steps=2 "$kept"
must_train skip 4 $all data.on_bad_shard=skip
left_out skip 0 2 3 5
same good skip 0
[ -n "$(print_of good)" ] && [ "$(print_of good)" = "$(print_of skip)" ] ||
    fail "fingerprint $(print_of skip), of the good shards alone $(print_of good)"

stopped 65 's-00000.tok.zst: truncated' stop 4 $all
stopped 65 's-00000.tok.zst: truncated' stop-said 1 $all data.on_bad_shard=stop
bad="[$(shard 0),$(shard 2),$(shard 3),$(shard 5)]"
stopped 65 'no shard is left: all of them are broken' none 2 data.heldout=[] data.train="$bad" \
    data.on_bad_shard=skip
stopped 66 'away.tok.zst: No such file' away 2 data.heldout=[] data.on_bad_shard=skip \
    data.train="$tmp/away.tok.zst"
mkdir -p "$tmp/other/not-a-file.tok.zst" # there, but not readable: that is not the shard's fault
stopped 66 'not-a-file.tok.zst: .*not a regular' odd 2 data.heldout=[] data.train="$tmp/other" \
    data.on_bad_shard=skip
for name in stop stop-said none away odd; do [ ! -e "$tmp/$name" ] || fail "$name: has begun"; done
# Within the ids: found when they are read, before a step uses them.
flip 1 400
stopped 65 's-00001.tok.zst: frame 0 .* is altered' altered 2 $all data.on_bad_shard=skip

# Broken on one machine's disk only: all leave it out.
mkdir "$tmp/here" "$tmp/there"
cp -r "$tmp/whole" "$tmp/here/shards"
mv "$tmp/whole" "$tmp/there/shards"
truncate -s -3 "$tmp/there/shards/s-00004.tok.zst"
start() {
    echo "-np 1 --wdir $tmp/$1 $dsv3 train $tmp/run.yaml run.dir=$tmp/two data.train=shards" \
        "data.heldout=[] train.steps=2 data.on_bad_shard=skip"
}
sed -i "s|^base: .*|base: $PWD/tests/tiny.yaml|" "$tmp/run.yaml"
timeout 60 mpirun $(start here) : $(start there) \
    </dev/null >"$tmp/two.out" 2>&1 || fail "two machines: $(cat "$tmp/two.out")"
left_out two 4
grep -q 'rank 1: .*s-00004' "$tmp/two.out" || fail "two machines: $(cat "$tmp/two.out")"
echo ok
