# A machine freezes, mpirun's daemon and the ranks on it: the other ranks end at the deadline, and
#TEST timeout=100 cores=1
# scripts/mpirun.sh ends mpirun, which would wait for that daemon for ever.
. tests/lib_train.sh
. tests/lib_stop.sh
make_run
make_agent
printf 'localhost slots=1\n127.0.0.3 slots=1\n' >"$tmp/hosts"
options='--oversubscribe --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo'
MPIRUN_OPTIONS="$options --mca plm_rsh_agent $tmp/agent" DSV3_PATIENCE_S=2 \
    sh scripts/mpirun.sh -f "$tmp/hosts" "$tmp/run.yaml" run.dir="$tmp/run" train.steps=100000 \
    run.deadline_s=3 debug.fault=stop debug.fault_rank=1 debug.fault_at='step 3, losses' \
    >"$tmp/run.out" 2>&1 &
mpirun=$!
within 60 'a rank to stop' find_stopped run
daemon=$(sed -n 's/^PPid:.//p' "/proc/$stopped/status")
grep -q orted "/proc/$daemon/cmdline" || fail "the parent of $stopped is no daemon of mpirun"
kill -STOP "$daemon"
ended
kill -KILL "$stopped" "$daemon"
[ $code = 70 ] || fail "exit code $code: $(cat "$tmp/run.out")"
grep -q '^fatal .* rank 1 .*; step 3, ' "$tmp/run.out" || fail "$(cat "$tmp/run.out")"
grep -q '^mpirun.sh: .*mpirun is killed' "$tmp/run.out" || fail "$(cat "$tmp/run.out")"
nothing_left run
echo ok
