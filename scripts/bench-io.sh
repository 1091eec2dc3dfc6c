#!/bin/sh
# bench-io.sh - what goes to and from disk on this machine: checkpoints beside a plain write and
# read of the same bytes, how long a save holds up the steps, tokens read and made.
# docs/performance.md explains the rows.
#
# usage: sh scripts/bench-io.sh
#        MODEL=demo        which model's checkpoints (configs/models/)
#        DSV3_BUILD        where dsv3 lies (build)
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

model=${MODEL:-demo} dir=$BUILD/bench-runs/io text=data/demo/train.tok.zst rounds=5
$MAKE all >/dev/null
DSV3_BUILD=$BUILD sh scripts/prepare-demo-data.sh >/dev/null 2>&1
rm -rf "$dir"
mkdir -p "$dir"

now() { date +%s.%N; }

# seconds COMMAND ...
seconds() {
    begin=$(now)
    "$@" >"$dir/said" 2>&1 || { cat "$dir/said" >&2; exit 1; }
    echo "$begin $(now)" | awk '{ printf "%.4f\n", $2 - $1 }'
}

median() { sort -g | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

# row NAME BYTES SECONDS PLAIN_SECONDS
row() {
    echo "$2 $3 $4" | awk -v name="$1" '{
        printf "  %-36s %9.2f %9.2f %8.0f%%\n", name, $1 * 1e-9 / $2, $1 * 1e-9 / $3,
            100 * $3 / $2 }'
}

number() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2"; }

# train NAME [key=value ...]
train() {
    name=$1
    shift
    mpirun -np 1 "$BUILD/dsv3" train "configs/models/$model.yaml" run.dir="$dir/$name" \
        data.train=$text optimizer.lr=1e-4 optimizer.warmup_steps=1 "$@" \
        </dev/null >"$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }
}

# What a save makes safe, by the plainest means: as many files of the same bytes, each synced once
# when all of it is there. Checksums, manifest and the names' syncs are what a save has beyond it.
plain_write() {
    for file in "$dir"/alone/checkpoints/latest/tensors-*.h5; do
        dd if="$file" of="$dir/plain/${file##*/}" bs=4M conv=fsync || return 1
    done
}
plain_read() { cat "$dir"/plain/tensors-*.h5; }

# Taking turns, so that all see the same disk, with the source of the plain write in memory.
for _ in $(seq $rounds); do
    rm -rf "$dir/alone" "$dir/plain"
    mkdir "$dir/plain"
    train alone train.steps=1 train.global_batch=1 train.micro_batch=1 data.sequence_length=16
    number ckpt_write_s "$dir/alone/metrics.jsonl" >>"$dir/writes"
    seconds plain_write >>"$dir/plain-writes"
    seconds "$BUILD/dsv3-ckpt" verify "$dir/alone/checkpoints/latest" >>"$dir/reads"
    seconds plain_read >>"$dir/plain-reads"
done
rm -rf "$dir/plain"
train steps train.steps=$rounds train.global_batch=8 train.micro_batch=8 data.sequence_length=256 \
    checkpoint.every=1 checkpoint.keep_last=2
grep ckpt_write_s "$dir/steps/metrics.jsonl" >"$dir/saves"
bytes=$(number ckpt_bytes "$dir/saves" | tail -n 1)
stall=$(number ckpt_stall_s "$dir/saves" | median)
step=$(number step_s "$dir/steps/metrics.jsonl" | median)

printf '%-38s %9s %9s %9s\n' "$model: $((bytes / 1000000)) MB a checkpoint" GB/s plain reached
plain=$(median <"$dir/plain-writes")
row 'write' "$bytes" "$(median <"$dir/writes")" "$plain"
row 'write, while the next step runs' "$bytes" "$(number ckpt_write_s "$dir/saves" | median)" \
    "$plain"
row 'read, with all checksums' "$bytes" "$(median <"$dir/reads")" "$(median <"$dir/plain-reads")"
echo "$stall $step" | awk '{ printf "  %-36s %9.1f ms: %.2f%% of 100 steps of %.0f ms\n",
    "the steps wait for a save", $1 * 1e3, $1 / $2, $2 * 1e3 }'

# A text that is long enough to be timed.
zstd -dcq data/moby_dick.txt.zst >"$dir/book"
for _ in $(seq 40); do cat "$dir/book"; done >"$dir/text"
rm -f "$dir/book"
tokens_a_second() {
    n=$1
    shift
    echo "$n $(seconds "$@")" | awk '{ printf "%.1f", $1 * 1e-6 / $2 }'
}
"$BUILD/dsv3-tokenize" --force --out "$dir/bytes.tok.zst" "$dir/text" >/dev/null 2>&1
n=$(wc -c <"$dir/text")
echo
printf '%-38s %9s\n' 'tokens, one core' M/s
printf '  %-36s %9s\n' 'reading a shard, all checks' \
    "$(tokens_a_second "$n" "$BUILD/dsv3-tokenize" --verify "$dir/bytes.tok.zst")"
json=${TOKENIZER:-}
if [ -n "$json" ]; then
    "$BUILD/dsv3-tokenize" --force --tokenizer "$json" --out "$dir/bpe.tok.zst" "$dir/text" \
        >/dev/null 2>&1
    n=$("$BUILD/dsv3-tokenize" --verify "$dir/bpe.tok.zst" | grep -o '[0-9,]* tokens' |
        head -n 1 | tr -dc 0-9)
    printf '  %-36s %9s\n' "making one with $(basename "$json")" "$(tokens_a_second "$n" \
        "$BUILD/dsv3-tokenize" --force --tokenizer "$json" --out "$dir/bpe.tok.zst" "$dir/text")"
fi
rm -rf "$dir"
