# checkpoint.keep_best: the weights of the lowest held-out loss are saved when it is found and stay
#TEST timeout=100 cores=2
# until a lower one is safe: also when the run is killed and resumes elsewhere, is pruned by hand,
# or was stopped before that evaluation.
. tests/lib_resume.sh
make_run
ckpt=$DSV3_BUILD/dsv3-ckpt
# Good until step 5, then finite, but ruined.
set -- train.steps=9 train.eval_every=2 checkpoint.every=3 checkpoint.keep_last=1 \
    checkpoint.keep_best=true optimizer.schedule=stages train.schedule_unit=steps \
    'optimizer.lr_stages=[{until: 5, value: 1e-3}, {until: 9, value: 1}]'

# left NAME STEPS: its checkpoints; the one of step 4 is listed as the best.
left() {
    [ "$(cd "$tmp/$1/checkpoints" && echo step-*)" = "$2" ] ||
        fail "$1: left $(ls "$tmp/$1/checkpoints")"
    "$ckpt" list "$tmp/$1" >"$tmp/$1.list"
    [ "$(grep ', best$' "$tmp/$1.list" | awk '{print $1, $4}')" = "4 $best" ] ||
        fail "$1: best $best: $(cat "$tmp/$1.list")"
}

must_train whole 2 "$@"
best=$(perl -MJSON::PP -ne '$o = decode_json($_); next unless defined $o->{eval_loss};
    $low = $o if !$low || $o->{eval_loss} < $low->{eval_loss};
    END { printf "%.5f", $low->{eval_loss} if $low->{step} == 4 }' "$tmp/whole/metrics.jsonl")
left whole 'step-00000004 step-00000009'

# Killed after the first evaluation that is worse, and once more, each time on another mesh.
killed parts 2 7 "$@"
killed parts 1 9 "$@"
must_train parts 2 "$@" topology.ep=2
left parts 'step-00000004 step-00000009'
"$ckpt" prune "$tmp/parts" --keep-last 1 >"$tmp/said"
grep -q 'step-00000004: kept, best held-out loss$' "$tmp/said" || fail "$(cat "$tmp/said")"
left parts 'step-00000004 step-00000009'

# Other held-out data: losses cannot be compared, so the next is the best.
must_train parts 2 "$@" train.steps=10 train.eval_sequences=4
[ "$(cd "$tmp/parts/checkpoints" && echo step-*)" = step-00000010 ] || fail 'not the new best'

# Saved before its evaluation: this is made at the next start, and kept in mind.
code=0
train stopped 1 "$@" train.steps=1 run.exit_after=1e-9 || code=$?
[ $code = 75 ] || fail "exit code $code: $(cat "$tmp/stopped.out")"
"$ckpt" list "$tmp/stopped" | grep -q best && fail 'an evaluation before the end'
must_train stopped 1 "$@" train.steps=1
"$ckpt" list "$tmp/stopped" | grep -q '^  *1 .*, best$' || fail "$("$ckpt" list "$tmp/stopped")"
