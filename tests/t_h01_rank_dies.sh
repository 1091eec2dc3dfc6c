# A rank that is killed or crashes ends the job within seconds; one line names it and where the run
#TEST timeout=100 cores=1 ASAN_OPTIONS=handle_segv=0
# was, and nothing is left running.
. tests/lib_train.sh
make_run

# Killed: mpirun tells the others to end, and one of them says who is gone.
# kill NAME RANK PLACE RANKS [section.key=value ...]
killed() {
    name=$1 rank=$2 place=$3
    shift 3
    later fails 137 "fatal .*rank $rank of this machine died.*; ${place%,*}, " "$name" "$@" \
        debug.fault=kill debug.fault_rank="$rank" debug.fault_at="$place"
}
killed start 2 'start-up, data' 4
killed forward 2 'step 3, dispatch forward of layer 2' 4 topology.ep=4
killed backward 0 'step 3, attention backward of layer 1' 4 topology.tp=2
killed reduction 1 'step 3, gradient reduction' 2
killed evaluation 3 'evaluation after step 5, loss' 4 topology.ep=2

# Crashed: it says so itself, also when it is alone.
crashed() {
    name=$1 rank=$2 place=$3
    shift 3
    later fails 139 "fatal .rank $rank/.*SIGSEGV .*; $place$" "$name" "$@" debug.fault=crash \
        debug.fault_rank="$rank" debug.fault_at="$place"
}
crashed crash-start 1 'start-up, data' 4
crashed crash 1 'step 3, experts backward of layer 3' 4 topology.ep=2
crashed crash-alone 0 'step 3, losses' 1
finish

# On its way a rank finds what no other sees: tests/t_d11_ranks_differ.c. Killed before MPI is
# there: the other process is the one of rank 0.
code=0
timeout 60 mpirun -np 1 "$dsv3" train "$tmp/run.yaml" \
    run.dir="$tmp/init" : -np 1 sh -c 'sleep 1; kill -KILL $$' </dev/null >"$tmp/init.out" 2>&1 ||
    code=$?
[ $code = 137 ] || fail "killed before MPI_Init: exit code $code: $(cat "$tmp/init.out")"
grep -q '^fatal rank 1 of this machine died.*; start-up, MPI_Init$' "$tmp/init.out" ||
    fail "killed before MPI_Init: $(cat "$tmp/init.out")"
echo ok
