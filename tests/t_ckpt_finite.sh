# What would be worse than no checkpoint is never the only one left: an update that makes weights
#TEST timeout=100 cores=2
# infinite ends the run in that step and is not saved; while steps are skipped nothing is removed,
# and a run that ends so ends with 70, also when it is started again.
. tests/lib_resume.sh
make_run
ckpt=$DSV3_BUILD/dsv3-ckpt
saving='checkpoint.every=1 checkpoint.keep_last=1 data.heldout=[]'

# left NAME STEPS: its checkpoints, all of them good.
left() {
    [ "$(cd "$tmp/$1/checkpoints" && echo step-*)" = "$2" ] ||
        fail "$1: left $(ls "$tmp/$1/checkpoints")"
    "$ckpt" verify "$tmp/$1" >"$tmp/$1.said" 2>&1 || fail "$1: $(cat "$tmp/$1.said")"
}

# huge NAME RANKS [key=value ...]: the learning rate of step 4 is beyond all reason; with a lower
# one the same run goes on.
made='step 4: the update has made the weight .*, element [0-9]*, -*\(inf\|nan\|[0-9.]*e+38\)'
stages='{until: 3, value: 1e-3}, {until: 4, value: 3e38}, {until: 5, value: 1e-3}'
huge() {
    fails 70 "$made" "$@" train.steps=6 $saving optimizer.schedule=stages \
        train.schedule_unit=steps "optimizer.lr_stages=[$stages]"
    left "$1" step-00000003
    must_train "$@" train.steps=6 $saving optimizer.schedule=constant
    resumed_at "$1" 3
    left "$1" step-00000006
}
later huge f32 2
later huge bf16 2 topology.ep=2 train.compute_dtype=bf16 optimizer.moments_dtype=bf16

# skips NAME [key=value ...]: the last of its four steps.
skips() {
    name=$1
    shift
    for part in first again; do
        code=0
        train "$name" 1 train.steps=4 $saving debug.bad_grad_step=4 \
            debug.bad_grad_param=lm_head.weight "$@" || code=$?
        [ $code = 70 ] || fail "$name, $part: exit code $code: $(cat "$tmp/$name.out")"
        grep -q '^warning .*last 1 step was skipped, .* those of step 3$' "$tmp/$name.err" ||
            fail "$name, $part: $(cat "$tmp/$name.err")"
    done
}
skips skips
left skips 'step-00000003 step-00000004'
code=0
"$ckpt" prune "$tmp/skips" --keep-last 1 >"$tmp/said" 2>&1 || code=$?
grep -q 'steps were being skipped (1 in a row).*step-00000004$' "$tmp/said" && [ $code = 65 ] ||
    fail "prune: exit code $code: $(cat "$tmp/said")"
left skips 'step-00000003 step-00000004'
must_train skips 1 train.steps=5 $saving # a good step: now the older ones go
left skips step-00000005
finish

# refuses NAME TENSOR RANKS [key=value ...]: a checkpoint that another program wrote with a number
# that is not finite: nothing takes it, on the mesh that wrote it and on another.
must_train spoilt 2 train.steps=4 checkpoint.every=2 data.heldout=[] topology.ep=2
refuses() {
    r_name=$1 r_tensor=$2 r_np=$3
    shift 3
    cp -r "$tmp/spoilt" "$tmp/$r_name"
    last=$tmp/$r_name/checkpoints/step-00000004
    "$DSV3_BUILD/tests/ckpt_spoil" "$last" "$r_tensor"
    r_words="$r_tensor: element 0 is inf, expected a finite number"
    for command in "verify $last" "export $last $tmp/$r_name.hf"; do
        code=0
        "$ckpt" $command >"$tmp/$r_name.said" 2>&1 || code=$?
        grep -q "$r_words" "$tmp/$r_name.said" && [ $code = 65 ] ||
            fail "$command: exit code $code: $(cat "$tmp/$r_name.said")"
    done
    set -- "$@" train.steps=4 data.heldout=[]
    fails 65 "run.init_from: .*$r_words\|$r_words" "$r_name-init" "$r_np" "$@" run.init_from="$last"
    must_train "$r_name" "$r_np" "$@"
    resumed_at "$r_name" 2
    grep -q "step-00000004.*$r_words" "$tmp/$r_name.err" || fail "$(cat "$tmp/$r_name.err")"
}
later refuses same model/model.layers.2.mlp.experts.3.up_proj.weight 2 topology.ep=2
later refuses other model/model.norm.weight 1
finish
