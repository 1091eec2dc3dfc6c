# More ranks than cores do not spin each other out: on two cores eight ranks take no more than three
#TEST timeout=150 cores=2
# times the time of one, and the start says what would be faster.
. tests/lib_train.sh
make_run
unset OMPI_MCA_mpi_yield_when_idle OMP_NUM_THREADS GOMP_SPINCOUNT # as a user starts it

# Threads that wait sleep soon, unless the environment says something else.
spins() {
    env OMP_DISPLAY_ENV=verbose "$@" "$dsv3" train 2>&1 |
        sed -n "s/.*GOMP_SPINCOUNT = '\(.*\)'.*/\1/p" | tail -n 1
}
found="$(spins) $(spins GOMP_SPINCOUNT=7) $(spins OMP_WAIT_POLICY=passive)"
[ "$found" = '1000 7 0' ] || fail "GOMP_SPINCOUNT $found, expected 1000 7 0"

# cpu_s NAME RANKS THREADS: processor seconds of 20 steps on two cores. Two busy
# cores for three times the time of one rank are six times its seconds; unlike the time on the clock
# these do not depend on what else the machine does.
cpu_s() {
    perl -e 'my @cores = map { /(\d+)-(\d+)/ ? ($1 .. $2) : $_ } split /,/, shift;
        my ($out, @command) = @ARGV;
        my $pid = fork // die;
        if (!$pid) {
            open STDOUT, ">", $out;
            open STDIN, "<", "/dev/null";
            exec "taskset", "-c", join(",", grep { defined } @cores[0, 1]), @command;
        }
        waitpid $pid, 0;
        die "exit status $?\n" if $?;
        my (undef, undef, $user, $system) = times;
        print $user + $system' "$(taskset -pc $$ | sed 's/.*: //')" "$tmp/$1.out" \
        mpirun -np "$2" "$dsv3" train "$tmp/run.yaml" \
        run.dir="$tmp/$1" train.steps=20 data.heldout=[] "run.threads=$3"
}
one=$(cpu_s one 1 1) || fail "one rank: $(cat "$tmp/one.out")"
for threads in 1 4; do
    eight=$(cpu_s "eight-$threads" 8 $threads) || fail "eight: $(cat "$tmp/eight-$threads.out")"
    perl -e 'exit !($ARGV[0] < 6 * $ARGV[1])' "$eight" "$one" ||
        fail "8 ranks x $threads threads took $eight s of processor time, 1 rank $one s"
    grep -q 'warning 8 ranks share [12] cores; mpirun -np [12] would be faster' \
        "$tmp/eight-$threads.out" || fail "no warning: $(cat "$tmp/eight-$threads.out")"
done
grep -q 'warning run.threads 4 lowered to 1: 8 ranks on [12] core' "$tmp/eight-4.out" ||
    fail "no warning: $(cat "$tmp/eight-4.out")"

# One rank with more threads than cores: not refused, but said.
threads=$(($(getconf _NPROCESSORS_ONLN) + 1))
export OMP_NUM_THREADS=$threads
must_train crowded 1 train.steps=1 optimizer.warmup_steps=1 data.heldout=[]
unset OMP_NUM_THREADS
grep -q "warning OMP_NUM_THREADS $threads lowered to $((threads - 1)): 1 rank on" \
    "$tmp/crowded.out" ||
    fail "no warning: $(cat "$tmp/crowded.out")"
must_train roomy 1 run.threads=1 train.steps=1 optimizer.warmup_steps=1 data.heldout=[]
! grep warning "$tmp/roomy.out" || fail 'a warning for one thread'
echo ok
