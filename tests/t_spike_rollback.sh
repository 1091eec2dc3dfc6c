# A run that returns to a checkpoint after a spike and passes over its samples ends with the bits of
#TEST timeout=100 cores=2
# one that was told to pass over them, on any layout, also when it is killed on the way; each
# rollback has one line and one object. Without a checkpoint, or a rollback left, it ends with 70.
. tests/lib_resume.sh
perl -e 'srand 3; my $w = "the of and to that in he shall ";
    print $w x 116, (map { chr(128 + int rand 120) } 1 .. 260), $w x 200' >"$tmp/text"
"$DSV3_BUILD/dsv3-tokenize" --any-bytes --out "$tmp/train.tok.zst" "$tmp/text" >/dev/null
cat >"$tmp/run.yaml" <<YAML
base: $PWD/tests/tiny.yaml
run: {dir: $tmp/run}
data: {train: $tmp/train.tok.zst, shuffle: false}
train: {steps: 20, spike_window: 6}
optimizer: {lr: 3e-3, schedule: constant}
checkpoint: {every: 8, keep_last: 1}
debug: {param_hash: true}
YAML

# objects NAME: of its rollbacks.
objects() {
    grep '"rollback":' "$tmp/$1/metrics.jsonl" >"$tmp/$1.objects"
    sed -i 's/.*"step":\(.*\)}$/\1/; s/"//g; s/value:[0-9].*,skip/skip/; s/,time:.*//' \
        "$tmp/$1.objects"
    printf '%s\n' \
        '8,rollback:1,spike_step:11,reason:nonfinite,value:null,median:null,skip_samples:[72,88]' \
        '8,rollback:2,spike_step:13,reason:loss,skip_samples:[104,120]' |
        cmp -s - "$tmp/$1.objects" ||
        fail "$1: rollbacks: $(cat "$tmp/$1.objects")"
}

# both NAME RANKS [key=value ...]: a gradient that is NaN in step 11, and odd text in samples 112 to
# 119; each has the batch before it passed over as well.
both() {
    b_name=$1 b_np=$2
    shift 2
    must_train "$b_name-told" "$b_np" "$@" 'data.skip_samples=[[72, 88], [104, 120]]'
    tail -n 3 "$tmp/$b_name-told/metrics.jsonl" | grep -q '"samples":192,"skipped_samples":32,' ||
        fail "$b_name: $(tail -n 3 "$tmp/$b_name-told/metrics.jsonl")"
    set -- "$@" train.on_spike=rollback debug.bad_grad_step=11 debug.bad_grad_param=lm_head.weight
    must_train "$b_name" "$b_np" "$@"
    same_end "$b_name-told" "$b_name"
    objects "$b_name"
    [ "$(grep -c '^warning .* back to the checkpoint of step 8, ' "$tmp/$b_name.err")" = 2 ] &&
        [ "$(wc -l <"$tmp/$b_name.err")" = 2 ] || fail "$b_name: $(cat "$tmp/$b_name.err")"
    # Killed before the checkpoint that knows of the rollbacks, and then after it.
    killed "$b_name-parts" "$b_np" 16 "$@"
    killed "$b_name-parts" "$b_np" 20 "$@"
    must_train "$b_name-parts" "$b_np" "$@"
    same_end "$b_name-told" "$b_name-parts"
    objects "$b_name-parts"
}
later both one 1
later both two 2 topology.ep=2 train.compute_dtype=bf16 optimizer.moments_dtype=bf16
later both four 4 topology.tp=2 topology.ep=2
finish
same one-told four-told 1e-4

# ends NAME WORDS [key=value ...]
ends() {
    e_name=$1 words=$2 code=0
    shift 2
    train "$e_name" 2 train.on_spike=rollback "$@" || code=$?
    [ $code = 70 ] && grep -q "^fatal .*$words" "$tmp/$e_name.err" ||
        fail "$e_name: exit code $code: $(cat "$tmp/$e_name.err")"
}
later ends early 'step 3: the gradient of lm_head.weight is not finite; there is no checkpoint' \
    debug.bad_grad_step=3 debug.bad_grad_param=lm_head.weight
stages='{until: 3, value: 1e-3}, {until: 4, value: 3e38}'
later ends used 'step 4: the update has made .*; all rollbacks of train.max_rollbacks are used' \
    checkpoint.every=1 train.max_rollbacks=1 optimizer.schedule=stages \
    train.schedule_unit=steps "optimizer.lr_stages=[$stages]"
finish
grep -q 'back to the checkpoint of step 3, ' "$tmp/used.err" || fail "used: $(cat "$tmp/used.err")"
