# One run is asked to stop again and again, in the middle of a step, of an evaluation, of a save,
#TEST timeout=150 cores=2
# of the start, each time in another way. All ranks save the same step once, the exit code is 75,
# and the pieces together are the run that nobody stopped, bit for bit.
. tests/lib_train.sh
. tests/lib_stop.sh
make_run
set -- topology.ep=2 train.steps=8 train.eval_every=3 train.log_every=1 run.overwrite=false \
    checkpoint.on_signal=true checkpoint.every=10000 \
    run.deadline_s=100
must_train plain 4 "$@"
usr1=10 term=15

# piece STEPS WHERE: the run ended with code 75, has these checkpoints, and nothing is left of it.
piece() {
    [ $code = 75 ] || fail "$2: exit code $code: $(cat "$tmp/run.out")"
    [ "$(checkpoints run)" = "$1" ] || fail "$2: checkpoints '$(checkpoints run)', expected '$1'"
    [ "$(readlink "$tmp/run/checkpoints/latest")" = "step-0000000${1##* }" ] || fail "$2: latest"
    grep -q "^stopped by .* after step ${1##* } of 8: saved" "$tmp/run.out" ||
        fail "$2: $(cat "$tmp/run.out")"
    nothing_left run
}

begin run 4 'step 2, attention backward of layer 1' "$@"
kill -USR1 $mpirun
within 10 SIGUSR1 is_pending $usr1
go_on
piece 2 'within a step'

begin run 4 'evaluation after step 3, attention forward of layer 0' "$@"
for pid in $(ranks_of run); do kill -TERM "$pid"; done
go_on
piece '2 3' 'within an evaluation'
! grep -q '"step":3,"eval_loss"' "$tmp/run/metrics.jsonl" || fail 'it was stopped, not finished'

# The save of step 4 waits for the stopped rank; what stops the run is saved after it.
begin run 4 'step 4, checkpoint' "$@" checkpoint.every=4
for pid in $(ranks_of run); do [ "$pid" = "$stopped" ] || break; done
kill -TERM "$pid"
go_on
piece '4 5' 'within a save, one rank only'

begin run 4 'start-up, metrics' "$@"
kill -USR1 $mpirun
ended
[ $code = 75 ] || fail "at the start: exit code $code: $(cat "$tmp/run.out")"
grep -q '^stopped .*by SIGUSR1 before the first step; start-up, ' "$tmp/run.out" ||
    fail "at the start: $(cat "$tmp/run.out")"
[ "$(checkpoints run)" = '4 5' ] || fail "at the start: checkpoints $(checkpoints run)"

# With the last step only its evaluation remains to be done.
begin run 4 'step 8, losses' "$@"
kill -USR1 $mpirun
within 10 SIGUSR1 is_pending $usr1
go_on
piece '5 8' 'within the last step'
must_train run 4 "$@"
same plain run 0
echo ok
