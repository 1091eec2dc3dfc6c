# The other ways to end a run early: mpirun's own end, run.exit_after, a second SIGINT, signals
#TEST timeout=100 cores=1
# when checkpoint.on_signal is off, a save that fails; and scripts/mpirun.sh.
. tests/lib_train.sh
. tests/lib_stop.sh
make_run
set -- checkpoint.on_signal=true train.steps=100000 train.log_every=100000
place='step 3, losses'

# is NAME CODE LINE SAVED: how it ended, and whether there is a checkpoint.
is() {
    [ $code = "$2" ] || fail "$1: exit code $code, expected $2: $(cat "$tmp/$1.out")"
    grep -q "$3" "$tmp/$1.out" || fail "$1: '$3' is not in: $(cat "$tmp/$1.out")"
    [ "$(checkpoints "$1" | wc -w)" = "$4" ] || fail "$1: checkpoints $(checkpoints "$1")"
    nothing_left "$1"
}

# SIGTERM to mpirun: SIGKILL follows SIGTERM, as late as it is told.
export OMPI_MCA_odls_base_sigkill_timeout=4
begin asked 2 "$place" "$@"
kill -TERM $mpirun
ended
is asked 1 '^stopped by SIGTERM after step .*: saved' 1
unset OMPI_MCA_odls_base_sigkill_timeout

# Rank 0 is the younger by a second: the other's time is up first, and that is no signal.
apart() {
    mpirun -np 1 sh -c 'sleep 1; exec "$@"' sh "$@" \
        : -np 1 "$@" </dev/null
}
code=0
apart "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/minutes" "$@" checkpoint.on_signal=false \
    run.exit_after=0.03 >"$tmp/minutes.out" 2>&1 || code=$?
is minutes 75 '^stopped by run.exit_after after step .*: saved' 1

begin plain 1 "$place" "$@" checkpoint.on_signal=false
kill -USR1 "$stopped"
go_on
is plain 138 '' 0

# A rank that hangs; in step 3, as step 2 is done.
train twice 1 "$@" debug.fault=hang debug.fault_at="$place" &
done_2() {
    grep -q '"step":2,' "$tmp/twice/metrics.jsonl" 2>/dev/null
}
within 60 'step 2' done_2
mpirun=$! stopped=$(ranks_of twice)
kill -INT "$stopped"
sleep 1
kill -0 "$stopped" || fail "one SIGINT has ended it: $(cat "$tmp/twice.out")"
kill -INT "$stopped"
ended
is twice 130 '' 0
grep -q '^stopped .*at once by a second SIGINT; step 3, losses' "$tmp/twice.err" ||
    fail "twice: $(cat "$tmp/twice.err")"

# Nothing is saved: nobody shall start it again and again. And mpirun itself would give no time.
export OMPI_MCA_odls_base_sigkill_timeout=0
begin full 2 "$place" "$@" checkpoint.on_error=warn
rm -rf "$tmp/full/checkpoints"
echo >"$tmp/full/checkpoints"
kill -USR1 $mpirun
within 10 SIGUSR1 is_pending 10
go_on
is full 74 '^stopped by SIGUSR1 after step 3 .*: not saved' 0
is full 74 "^warning .*Ctrl-C or SIGTERM would lose .* after 0 s, .*kill -USR1 $mpirun" 0

sh scripts/mpirun.sh -n 2 "$tmp/run.yaml" run.dir="$tmp/script" "$@" debug.fault=stop \
    debug.fault_rank=1 debug.fault_at="$place" >"$tmp/script.out" 2>&1 &
mpirun=$!
within 60 'the script' find_stopped script
kill -TERM $mpirun
within 10 SIGUSR1 is_pending 10
go_on
is script 75 '^mpirun.sh: SIGTERM: the run saves at the end of its step and stops' 1
! grep 'would lose' "$tmp/script.out" || fail 'the script would not lose it'
is script 75 '^stopped by SIGUSR1 after step 3 .*: saved' 1
echo ok
