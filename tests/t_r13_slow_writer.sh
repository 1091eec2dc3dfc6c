# Saves that take longer than the steps behind them, in every step: each has the weights, moments,
#TEST timeout=60 cores=2
# biases and state of its own step. A run from each of them is the run that was never stopped.
. tests/lib_train.sh
. tests/lib_faulty.sh
make_run
saving="$small checkpoint.keep_last=0 train.steps=5 train.eval_every=0 debug.token_hash=true"

# One that waits for every save: each step is a run of its own.
for step in 1 2 3 4 5; do
    faulty '' must_train alone 2 $saving topology.ep=2 train.steps=$step checkpoint.on_exit=true
done
checkpoints_of alone >"$tmp/alone.digests"
[ "$(wc -l <"$tmp/alone.digests")" = 5 ] || fail "alone: not 5 checkpoints"

# Slow on all ranks, and on one of them.
for rank in 0,1 1; do
    name=slow$rank
    faulty "FAULTY_WRITE_MS=4 FAULTY_RANKS=$rank FAULTY_LOG=$tmp/$name.log" \
        must_train $name 2 $saving topology.ep=2 checkpoint.every=1
    only_those_of alone $name
    cmp "$tmp/alone.digests" "$tmp/$name.digests" || fail "$name: a checkpoint is missing"
done

# Steps were made while files were written: else nothing of this has been tested.
perl -MJSON::PP -ne '$o = decode_json($_); $steps++ if $o->{loss};
    $stall += $o->{ckpt_stall_s} // 0; $write += $o->{ckpt_write_s} // 0;
    END { die "stall $stall s, write $write s\n"
        unless $steps == 5 && $write > 2 && $stall < $write / 4 }' "$tmp/slow1/metrics.jsonl" ||
    fail "the saves were not behind training"

go_on() {
    name=from$1
    mkdir "$tmp/$name" && cp -r "$tmp/slow1/checkpoints" "$tmp/slow1/metrics.jsonl" "$tmp/$name"
    faulty '' must_train "$name" 2 $saving topology.ep=2 checkpoint.every=1 \
        run.resume="$tmp/$name/checkpoints/step-0000000$1"
    checkpoints_of "$name" | cmp - "$tmp/alone.digests" || fail "$name: another run"
    same slow1 "$name" 0
}
for step in 1 2 3 4; do later go_on $step; done
finish
echo ok
