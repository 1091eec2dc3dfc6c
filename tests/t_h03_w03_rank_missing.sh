# A rank that stops, or waits for something else for ever, is named soon after the deadline: which
#TEST long=1 timeout=150 cores=1
# one, on which host, the collective and its number, who waits, and where the run is; the job ends.
. tests/lib_train.sh
make_run
deadline=$((4 * ${DSV3_TIMEOUT_SCALE:-1})) # on a busy machine a rank may wait for a core

# missing NAME FAULT RANK COLLECTIVE WAITING PLACE RANKS [section.key=value ...]
missing() {
    name=$1 fault=$2 rank=$3 place=$6
    words="rank $rank ($(uname -n)) did not enter collective ${4% over *} #[0-9]* on axis"
    words="$words ${4##* over }, where $5"
    shift 6
    later fails 70 "fatal .*$words waited for $deadline s; $place$" "$name" "$@" \
        run.deadline_s=$deadline debug.fault="$fault" debug.fault_rank="$rank" \
        debug.fault_at="$place"
}
missing start stop 2 'start of the measurement over world' 'ranks 0, 1, 3' 'start-up, measurement' 4
missing forward stop 1 'all_to_all over ep' 'ranks 0, 2, 3' 'step 5, dispatch forward of layer 2' \
    4 topology.ep=4
missing reduction stop 0 'reduce_scatter over dp' 'rank 2' 'step 2, gradient reduction' 4 \
    topology.tp=2 topology.ep=2
missing backward hang 3 'all_to_all_rows over ep' 'rank 2' 'step 2, combine backward of layer 1' \
    4 topology.ep=2
missing evaluation stop 1 'all_gather over tp' 'rank 0' \
    'evaluation after step 5, attention forward of layer 0' 2 topology.tp=2
finish

# MPI_Init cannot be polled: there the ranks that stopped are found by looking, and the deadline
# comes from the environment, as the configuration is not known yet.
export DSV3_DEADLINE_S=$deadline
train="$dsv3 train $tmp/run.yaml run.dir=$tmp/init"
code=0
timeout 60 mpirun -np 1 $train : -np 1 \
    sh -c 'kill -STOP $$; exec "$@"' stopped $train </dev/null >"$tmp/init.out" 2>&1 || code=$?
[ $code = 70 ] || fail "MPI_Init: exit code $code: $(cat "$tmp/init.out")"
grep -q "^fatal MPI_Init has not ended after $deadline s, stopped: rank 1" "$tmp/init.out" ||
    fail "MPI_Init: $(cat "$tmp/init.out")"
nothing_left init
echo ok
