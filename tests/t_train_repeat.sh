# The same command twice gives the same bits: metrics and the hash of all parameters; F32 and BF16,
# TEST timeout=100 cores=2
# on a mesh that uses every collective.
. tests/lib_train.sh
make_run
for dtype in f32 bf16; do
    for run in a b; do
        must_train "$dtype-$run" 4 topology.tp=2 topology.ep=4 train.compute_dtype=$dtype \
            debug.param_hash=true train.eval_every=5
    done
    same "$dtype-a" "$dtype-b" 0
    hash=$(grep -h -i 'hash' "$tmp/$dtype-a.out") || fail "no parameter hash printed"
    [ "$hash" = "$(grep -h -i 'hash' "$tmp/$dtype-b.out")" ] || fail "parameter hashes differ"
done
echo ok
