#!/bin/sh
# demo.sh - the main job on this machine, from nothing: installs what is missing, builds, prepares
# real text, trains a small DeepSeek-V3 model on all cores, and compares what it learnt with the
# text's bigram entropy.
#
# usage: sh scripts/demo.sh [--no-install] [section.key=value ...]
#        sh scripts/demo.sh [--no-install] resume
#           the same, unless it is there already; then once more, stopped halfway and gone on with
#           another number of ranks, and both loss curves side by side
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

config=configs/runs/demo.yaml run=runs/demo text=data/demo

install=yes
if [ "${1:-}" = --no-install ]; then
    install=no
    shift
fi
[ $install = no ] || sh scripts/install.sh
$MAKE all
DSV3_BUILD=$BUILD sh scripts/prepare-demo-data.sh
bigram=$("$BUILD/dsv3-bigram" $text/train.tok.zst $text/heldout.tok.zst 2>/dev/null)

# One rank a core, at least 2 and at most 16; at least the 8 sequences a step of the configuration.
ranks=$CORES
[ "$ranks" -ge 2 ] || ranks=2
[ "$ranks" -le 16 ] || ranks=16
micro=$(((8 + ranks - 1) / ranks)) batch=$(((8 + ranks - 1) / ranks * ranks))

# train RANKS DIRECTORY [section.key=value ...]; with $then exec it becomes mpirun itself
train() {
    np=$1 dir=$2
    shift 2
    set -- $config train.micro_batch=$((batch / np)) train.global_batch=$batch "$@" run.dir="$dir"
    echo "mpirun --bind-to none -np $np $BUILD/dsv3 train $*"
    $then mpirun --bind-to none -np "$np" "$BUILD/dsv3" train "$@"
}
then=
anew='run.overwrite=true run.resume=none' # a demo may be repeated, from its beginning

if [ "${1:-}" = resume ]; then
    . scripts/demo-resume.sh
    exit
fi
train $ranks $run $anew "$@"

loss=$(sed -n 's/.*"eval_loss": *\([-+.0-9e]*\).*/\1/p' $run/metrics.jsonl | tail -n 1)
prompt='And God said'
text=$("$BUILD/dsv3" generate $run --prompt "$prompt" --tokens 100 --temperature 0.6 2>/dev/null |
    tr '\n' ' ')
cat <<END

Predicting the next byte of the part of the text that was not trained on, in nats a byte:

    $(printf %.4f "$bigram")   from the byte before it (bigram entropy, counts of the training part)
    $(printf %.4f "$loss")   by the model just trained (guessing blindly: 5.5452)

And it goes on from "$prompt":

    $text

Its curves: $("$BUILD/dsv3" report $run) (a page for a browser)

What next?
    $BUILD/dsv3 check $config   every setting and where it came from
    less $run/metrics.jsonl                the numbers of every step
    $BUILD/dsv3-ckpt list $run                what it has saved
    $BUILD/dsv3 generate $run --prompt "In the beginning" --temperature 0.8
    sh scripts/demo.sh resume                   stop it halfway, go on with another number of ranks
    sh scripts/demo.sh train.steps=1000         train longer
    less configs/README.md                      what can be set; configs/runs/ has larger runs
    sh scripts/test.sh                          run the tests
END
