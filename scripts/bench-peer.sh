#!/bin/sh
# bench-peer.sh - dsv3 and PyTorch side by side: the same model, the same tokens a step, the same
# cores, one after the other. Prints a row a model: median tokens/s of both and their ratio.
#
# usage: sh scripts/bench-peer.sh [PYTHON]      PYTHON has torch and transformers (python3)
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

python=${1:-python3} text=data/demo/train.tok.zst dir=$BUILD/bench-peer
$MAKE all >/dev/null
DSV3_BUILD=$BUILD sh scripts/prepare-demo-data.sh >/dev/null 2>&1
mkdir -p "$dir"

# row MODEL SEQUENCE_LENGTH SEQUENCES STEPS
row() {
    model=configs/models/$1.yaml
    $MPIRUN -np 2 "$BUILD/dsv3" train "$model" run.dir="$dir/$1" run.overwrite=true \
        data.train="$text" data.sequence_length="$2" train.global_batch="$3" \
        train.micro_batch=$(($3 / 2)) train.steps=$(($4 + 1)) train.mtp_loss_weight=0 \
        model.num_nextn_predict_layers=0 optimizer.lr=1e-4 optimizer.schedule=constant \
        optimizer.warmup_steps=1 >"$dir/$1.out"
    ours=$(awk '/tokens\/s/ { gsub(",", "", $2); print $2 }' "$dir/$1.out")
    share=$(sed -n 's/.*: \([0-9.]*%\) of the peak.*/\1/p' "$dir/$1.out")
    theirs=$("$python" tools/peer_pytorch.py "$model" "$2" "$3" "$4" 2)
    echo "$1 $ours $share $theirs" | awk '{ ratio = $2 / $4
        printf "%-6s  dsv3 %s tokens/s (%s of peak)  peer %s (%s %s, %s %s)  ratio %.2f\n",
               $1, $2, $3, $4, $5, $6, $7, $8, ratio }'
}

row demo 256 8 20
row small 1024 2 6
