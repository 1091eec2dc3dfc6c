#!/bin/sh
# bench.sh - how fast whole training steps are on this machine, how much memory they take, and where
# their time goes: for each model the same step (no MTP, no balance loss) as 1 rank with all threads
# and as ranks of 1 thread, in F32 and BF16; then a profile. docs/performance.md explains the rows.
#
# usage: sh scripts/bench.sh
#        BENCH="demo small wide"   which models (all)
#        PEER=/path/to/python      with torch and transformers: PyTorch in between, same minutes
#        PEER_WAYS="eager compiled autocast"   which of its ways (all; autocast is slow on CPUs)
#        DSV3_BUILD                where dsv3 lies (build)
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

peer=${PEER:-} note= dir=$BUILD/bench-runs text=data/demo/train.tok.zst
$MAKE all "$BUILD/bench/machine" >/dev/null
DSV3_BUILD=$BUILD sh scripts/prepare-demo-data.sh >/dev/null 2>&1
mkdir -p "$dir"

now() { date +%s.%N; }

# Lines of standard input, and after the one of the first step how long after $1 it came.
stamp() {
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in
        *'first step'*) echo "$1 $(now)" | awk '{ printf "first_s %.1f\n", $2 - $1 }' ;;
        esac
    done
}

unsaved="checkpoint.every_minutes=0 checkpoint.on_exit=false checkpoint.on_signal=false"

key() { sed -n "s/^  $2: *\([0-9]*\).*/\1/p" "configs/models/$1.yaml"; }

# The shape of a model's step: tokens a sequence, sequences a step, timed steps. And the mesh of
# ranks with one thread each: dp as the batch allows, tp for the cores that are left.
set_shape() {
    case $1 in
    demo) T=256 B=8 steps=20 ;;
    small) T=1024 B=2 steps=4 ;;
    wide) T=2048 B=1 steps=3 ;;
    *) echo "bench.sh: no model $1; there are demo, small, wide" >&2; exit 64 ;;
    esac
    heads=$(key "$1" num_attention_heads) experts=$(key "$1" n_routed_experts)
    dp=$CORES
    while [ $((B % dp)) != 0 ] || [ "$dp" -gt "$B" ]; do dp=$((dp - 1)); done
    tp=$((CORES / dp))
    while [ $((heads % tp)) != 0 ]; do tp=$((tp - 1)); done
    ranks=$((dp * tp)) ep=$((dp * tp))
    [ $((experts % ep)) = 0 ] || ep=1
}

# train MODEL STEPS RANKS [section.key=value ...]: output in $dir/out
train() {
    m=$1 n=$2 np=$3
    shift 3
    mpirun -np "$np" "$BUILD/dsv3" train "configs/models/$m.yaml" run.dir="$dir/$m" \
        run.overwrite=true run.resume=none $unsaved data.train=$text \
        data.sequence_length=$T train.global_batch=$B \
        train.steps=$((n + 1)) train.mtp_loss_weight=0 train.balance_loss_alpha=0 \
        model.num_nextn_predict_layers=0 optimizer.lr=1e-4 optimizer.schedule=constant \
        optimizer.warmup_steps=1 "$@" </dev/null 2>&1 | stamp "$(now)" >"$dir/out"
    grep -q '^done: ' "$dir/out" || { cat "$dir/out"; exit 1; }
}

# row NAME TOKENS_A_SECOND FIRST_STEP_S PEAK_MIB [PEAK_GFLOPS]
row() {
    echo "$2 $3 $4 ${5:-0} $flop" | awk -v name="$1" '{
        gflops = $1 * $5 * 1e-9
        share = $4 > 0 ? sprintf("%5.1f%%", 100 * gflops / $4) : "     -"
        printf "  %-36s %9.1f %9.1f %s %9.1f %9.0f\n", name, $1, gflops, share, $2, $3 }'
}

# ours MODEL DTYPE RANKS THREADS [section.key=value ...]: a row; sets tok_s
ours() {
    m=$1 dtype=$2 np=$3 threads=$4
    shift 4
    train "$m" $steps "$np" train.compute_dtype="$dtype" run.threads="$threads" "$@"
    tok_s=$(awk '/^  tokens\/s/ { gsub(",", "", $2); print $2 }' "$dir/out")
    mib=$(awk '/^memory .*resident/ { print $2 }' "$dir/out")
    first=$(awk '/^first_s/ { print $2 }' "$dir/out")
    peak=$(awk '/^peak/ { print $2 }' "$dir/out")
    flop=$(sed -n '1s/.*"flop_per_token":\([0-9.e+]*\).*/\1/p' "$dir/$m/metrics.jsonl")
    row "dsv3 $dtype, $np x $threads threads$note" "$tok_s" "$first" "$mib" "$peak"
}

# Beside as many busy processes as cores; then threads that wait had better sleep soon. As dsv3 sets
# it by itself, and sleeping at once.
beside_busy() {
    busy=
    for _ in $(seq "$CORES"); do
        sh -c 'while :; do :; done' &
        busy="$busy $!"
    done
    note=', cores busy'
    ours "$1" f32 1 "$CORES" train.micro_batch=$B
    note=', busy, passive'
    export OMP_WAIT_POLICY=passive
    ours "$1" f32 1 "$CORES" train.micro_batch=$B
    unset OMP_WAIT_POLICY
    note=
    # shellcheck disable=SC2086
    kill $busy
}

# theirs MODEL NAME [option ...]: a row; sets tok_s. A way that fails on this machine says so.
theirs() {
    m=$1 name="PyTorch $2"
    shift 2
    "$peer" tools/peer_pytorch.py "configs/models/$m.yaml" $T $B --steps $steps \
        --threads "$CORES" "$@" 2>"$dir/err" | stamp "$(now)" >"$dir/out"
    tok_s=$(awk '/^tok_s/ { print $2 }' "$dir/out")
    if [ -z "$tok_s" ]; then
        echo "  $name failed: $(tail -n 1 "$dir/err")"
        tok_s=0
    else
        row "$name" "$tok_s" "$(awk '/^first_s/ { print $2 }' "$dir/out")" \
            "$(awk '/^tok_s/ { print $4 }' "$dir/out")"
    fi
}

# The larger of numbers.
most() { printf '%s\n' "$@" | sort -g | tail -n 1; }

bench() {
    model=$1
    set_shape "$model"
    echo
    printf '%-38s %9s %9s %6s %9s %9s\n' "$model: $B x $T tokens a step" tokens/s GFLOP/s peak \
        first_s MiB
    ours "$model" f32 1 "$CORES" train.micro_batch=$B
    best=$tok_s
    if [ -n "$peer" ]; then
        their_best=0 their_bf16=0
        for way in ${PEER_WAYS:-eager compiled autocast}; do
            case $way in
            eager) theirs "$model" 'f32 eager' ;;
            compiled) theirs "$model" 'f32 compiled' --compile ;;
            autocast) theirs "$model" 'bf16 autocast' --dtype autocast && their_bf16=$tok_s ;;
            *) echo "bench.sh: no way $way of the peer" >&2; exit 64 ;;
            esac
            [ "$way" = autocast ] || their_best=$(most "$their_best" "$tok_s")
        done
        ours "$model" f32 1 "$CORES" train.micro_batch=$B
        best=$(most "$best" "$tok_s")
    fi
    ours "$model" bf16 1 "$CORES" train.micro_batch=$B
    bf16=$tok_s
    if [ $ranks -gt 1 ]; then
        mesh="train.micro_batch=$((B / dp)) topology.tp=$tp topology.ep=$ep"
        # shellcheck disable=SC2086
        ours "$model" f32 $ranks 1 $mesh && best=$(most "$best" "$tok_s")
        # shellcheck disable=SC2086
        ours "$model" bf16 $ranks 1 $mesh && bf16=$(most "$bf16" "$tok_s")
    fi
    [ "$model" != demo ] || beside_busy "$model"
    if [ -n "$peer" ]; then
        echo "$best $their_best $bf16 $their_bf16" | awk '{
            printf "  ratio dsv3 / PyTorch, best of each:"
            if ($2 > 0) printf " f32 %.2f", $1 / $2
            if ($4 > 0) printf " bf16 %.2f", $3 / $4
            print "" }'
    fi
    train "$model" $(((steps + 1) / 2)) 1 run.threads="$CORES" train.micro_batch=$B \
        debug.profile=true
    echo
    sed -n '/^profile of/,/^done: /{ /^done: /d; p; }' "$dir/out"
}

sed -n 's/^model name.*: /# /p' /proc/cpuinfo | sort -u
"$BUILD/bench/machine" "$CORES"
[ -z "$peer" ] || "$peer" -c 'import torch, transformers
print(f"# PyTorch {torch.__version__}, transformers {transformers.__version__}")'
for model in ${BENCH:-demo small wide}; do bench "$model"; done
