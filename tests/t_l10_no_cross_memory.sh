# Where the kernel does not let ranks read each other's memory (containers without ptrace), a run
#TEST timeout=60 cores=1
# says so once, and Open MPI does not print a line for every message.
. tests/lib_train.sh
make_run
cat >"$tmp/as_in_container" <<SH
exec "$DSV3_BUILD/tests/no_cross_memory" "$dsv3" "\$@"
SH
code=0
# Messages beyond some kB are what is read from the other rank's memory.
timeout $((60 * ${DSV3_TIMEOUT_SCALE:-1})) mpirun -np 2 \
    sh "$tmp/as_in_container" train "$tmp/run.yaml" model.hidden_size=256 train.steps=2 \
    </dev/null >"$tmp/out" 2>&1 || code=$?
[ $code != 77 ] || { echo 'skipped: no seccomp here' && exit 77; }
[ $code = 0 ] || fail "exit code $code: $(cat "$tmp/out")"
[ "$(grep -c "ranks may not read each other's memory" "$tmp/out")" = 1 ] || fail "$(cat "$tmp/out")"
! grep 'Read -1' "$tmp/out" || fail 'Open MPI has tried to read the memory of the other rank'
echo ok
