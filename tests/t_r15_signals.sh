# Every signal that would end the run without a word has an answer: those that ask for an end save
#TEST timeout=100 cores=1
# and exit with 75, others say what came; nohup's SIGHUP, a stray SIGALRM and a standard output that
# is closed or that nobody reads do not end it.
. tests/lib_train.sh
. tests/lib_stop.sh
make_run
set -- checkpoint.on_signal=true train.log_every=1
place='step 2, losses'

# start NAME [section.key=value ...]: one rank without mpirun, stopped in step 2.
start() {
    name=$1
    shift
    # In the background sh would make it ignore SIGQUIT.
    perl -e '$SIG{QUIT} = "DEFAULT"; exec @ARGV' "$dsv3" train "$tmp/run.yaml" \
        run.dir="$tmp/$name" "$@" debug.fault=stop debug.fault_at="$place" \
        </dev/null >"$tmp/$name.out" 2>&1 &
    mpirun=$!
    within 60 "$name to come to '$place'" find_stopped "$name"
}

for signal in HUP USR2 XCPU PWR; do
    start $signal "$@"
    kill -$signal "$stopped"
    go_on
    [ $code = 75 ] || fail "SIG$signal: exit code $code: $(cat "$tmp/$signal.out")"
    grep -q "^stopped by SIG$signal after step 2 .*: saved" "$tmp/$signal.out" ||
        fail "$(cat "$tmp/$signal.out")"
    [ "$(checkpoints $signal)" = 2 ] || fail "SIG$signal: checkpoints $(checkpoints $signal)"
done

start QUIT "$@"
ulimit -c 0
kill -QUIT "$stopped"
go_on
[ $code = 131 ] || fail "SIGQUIT: exit code $code"
grep -q '^fatal .*SIGQUIT sent by process [0-9]*; step 2, losses' "$tmp/QUIT.out" ||
    fail "$(cat "$tmp/QUIT.out")"

trap '' HUP
start ignored "$@"
trap - HUP
kill -HUP "$stopped"
kill -ALRM "$stopped"
go_on
[ $code = 0 ] || fail "SIGHUP under nohup, SIGALRM: exit code $code: $(cat "$tmp/ignored.out")"

# All steps are in metrics.jsonl, and nothing of the console is in another file.
code=0
{
    "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/pipe" "$@" 2>"$tmp/pipe.err" || echo $? >"$tmp/code"
} | true
[ ! -e "$tmp/code" ] || fail "nobody reads: exit code $(cat "$tmp/code"): $(cat "$tmp/pipe.err")"
[ "$(grep -c 'standard output cannot be written' "$tmp/pipe.err")" = 1 ] ||
    fail "nobody reads: $(cat "$tmp/pipe.err")"
"$dsv3" train "$tmp/run.yaml" run.dir="$tmp/closed" "$@" checkpoint.on_exit=true >&- 2>&- <&- ||
    fail "closed: exit code $?"
! grep -rl '^step:' "$tmp/closed" || fail 'the console was written into a file of the run'
same pipe closed 0
echo ok
