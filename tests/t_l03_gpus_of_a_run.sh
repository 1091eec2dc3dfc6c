# A run on GPUs whose scheduler shows a rank too few ends with advice; one each is taken, with a
#TEST timeout=60 cores=1
# warning. (Without CUDA in the program the run ends there.)
. tests/lib_train.sh
make_run
export CUDA_VISIBLE_DEVICES=0,1
refused 78 'fatal .*4 ranks on this machine, .* sees 2 GPUs.*--gpu-bind=none' two 4 \
    run.backend=cuda topology.ranks_per_node=2
CUDA_VISIBLE_DEVICES=
refused 78 'fatal .*sees no GPU' none 2 run.backend=cuda
CUDA_VISIBLE_DEVICES=0
code=0
train one 2 run.backend=cuda || code=$?
[ $code = 78 ] || fail "one GPU: exit code $code"
[ "$(grep -c '^warning .*--gpu-bind=none' "$tmp/one.err")" = 1 ] || fail "$(cat "$tmp/one.err")"
grep -q '^fatal .*run.backend cuda: GPU 0, ' "$tmp/one.err" || fail "$(cat "$tmp/one.err")"
echo ok
