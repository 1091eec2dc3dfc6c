#!/bin/sh
# demo.sh - the main job on this machine, from nothing: installs what is missing, builds, prepares
# real text, trains a small DeepSeek-V3 model on all cores, and compares what it learnt with the
# text's bigram entropy.
#
# usage: sh scripts/demo.sh [--no-install] [section.key=value ...]
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

config=configs/runs/demo.yaml run=runs/demo text=data/demo batch=8

install=yes
if [ "${1:-}" = --no-install ]; then
    install=no
    shift
fi
[ $install = no ] || sh scripts/install.sh
$MAKE all
DSV3_BUILD=$BUILD sh scripts/prepare-demo-data.sh
bigram=$("$BUILD/dsv3-bigram" $text/train.tok.zst $text/heldout.tok.zst 2>/dev/null)

# One rank a core, but at least 2 and a power of two, so that the batch of 8 sequences comes out.
ranks=2
while [ $((ranks * 2)) -le "$CORES" ] && [ $ranks -lt $batch ]; do ranks=$((ranks * 2)); done

set -- $config train.micro_batch=$((batch / ranks)) "$@" run.dir=$run
echo "$MPIRUN -np $ranks $BUILD/dsv3 train $*"
$MPIRUN -np $ranks "$BUILD/dsv3" train "$@"

loss=$(sed -n 's/.*"eval_loss": *\([-+.0-9e]*\).*/\1/p' $run/metrics.jsonl | tail -n 1)
cat <<END

Predicting the next byte of the part of the text that was not trained on, in nats a byte:

    $(printf %.4f "$bigram")   from the byte before it (bigram entropy, counts of the training part)
    $(printf %.4f "$loss")   by the model just trained (guessing blindly: 5.5452)

What next?
    $BUILD/dsv3 check $config   every setting and where it came from
    less $run/metrics.jsonl                the numbers of every step
    sh scripts/demo.sh train.steps=1000         train longer
    less configs/README.md                      what can be set; configs/runs/ has larger runs
    sh scripts/test.sh                          run the tests
END
