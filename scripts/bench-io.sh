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

# Saves taking turns with plain writes of as many bytes, so that both see the same disk.
$MPIRUN -np 1 "$BUILD/dsv3" train "configs/models/$model.yaml" run.dir="$dir/run" \
    data.train=$text data.sequence_length=256 train.global_batch=8 train.micro_batch=8 \
    train.steps=$rounds optimizer.lr=1e-4 optimizer.warmup_steps=1 checkpoint.every=1 \
    checkpoint.keep_last=2 </dev/null >"$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }
grep ckpt_write_s "$dir/run/metrics.jsonl" >"$dir/saves"
number() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2"; }
bytes=$(number ckpt_bytes "$dir/saves" | tail -n 1)
stall=$(number ckpt_stall_s "$dir/saves" | median)
step=$(number step_s "$dir/run/metrics.jsonl" | median)

for _ in $(seq $rounds); do
    rm -f "$dir/plain"
    seconds dd if="$dir/run/checkpoints/latest/tensors-00000.h5" of="$dir/plain" bs=4M conv=fsync
done >"$dir/plain-writes"
for _ in $(seq $rounds); do seconds cat "$dir/plain"; done >"$dir/plain-reads"
for _ in $(seq $rounds); do
    seconds "$BUILD/dsv3-ckpt" verify "$dir/run/checkpoints/latest"
done >"$dir/reads"

printf '%-38s %9s %9s %9s\n' "$model: $((bytes / 1000000)) MB a checkpoint" GB/s plain reached
row 'write, while the next step runs' "$bytes" "$(number ckpt_write_s "$dir/saves" | median)" \
    "$(median <"$dir/plain-writes")"
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
