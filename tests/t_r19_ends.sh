# Going on at the end of a run does nothing and writes nothing; a longer one does just the steps
#TEST timeout=60 cores=2
# that are missing, over the end of an epoch as well, and saves only when it is time.
. tests/lib_resume.sh
make_run
set -- topology.ep=2 checkpoint.every=4

state() {
    (cd "$tmp/run" && find . -type f ! -name metrics.jsonl -exec ls -l --time-style=full-iso {} +)
}

first run 2 8 "$@"
before=$(state)
first run 2 8 "$@"
grep -q '^nothing left to do: step 8 is done, train.steps is 8' "$tmp/run.out" ||
    fail 'does not say that it is done'
loss=$(sed -n 's/.*"loss":\([0-9.]*\),.*/\1/p' "$tmp/run/metrics.jsonl" | tail -1)
grep -q "^  loss       $(printf %.5f "$loss") in the last step before" "$tmp/run.out" ||
    fail "not its last loss: $(cat "$tmp/run.out")"
[ "$before" = "$(state)" ] || fail "written: $(state)"

first run 2 13 "$@" checkpoint.on_exit=false
[ "$(cd "$tmp/run/checkpoints" && echo *)" = 'latest step-00000008 step-00000012' ] ||
    fail "checkpoints: $(ls "$tmp/run/checkpoints")"
first whole 2 13 "$@"
same whole run 0

# 662 sequences an epoch: 82 steps of 8, and 6 sequences more
first epoch 1 83
first epoch 1 85
first epochs 1 85
resumed_at epoch 83
same epochs epoch 0
