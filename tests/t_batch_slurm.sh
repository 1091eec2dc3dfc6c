# Below a real Slurm: a job that needs more time than it has gets SIGUSR1 before its time limit,
#TEST long=1 timeout=180 cores=1
# saves, ends with exit code 75, goes back into the queue, starts again and finishes. Its loss curve
# is that of a run below mpirun that nobody stopped, bit for bit.
. tests/lib_train.sh
. tests/lib_stop.sh
. tests/lib_slurm.sh
slurm_need
make_run
set -- topology.ep=2 train.steps=16 train.eval_every=4 run.overwrite=false run.deadline_s=100 \
    checkpoint.on_signal=true checkpoint.every=10000
slurm_start

# Slurm looks at time limits every 30 s only: till then a rank waits in step 8. Slurm's signal lets
# it go on.
export DSV3="$dsv3"
job=$(sbatch --parsable --ntasks-per-node=2 --time=3 --signal=USR1@175 --output="$tmp/slurm.out" \
    scripts/train.sbatch "$tmp/run.yaml" run.dir="$tmp/slurm" "$@" \
    debug.fault=stop debug.fault_rank=1 debug.fault_at='step 8, losses')
must_train plain 2 "$@"

# Meanwhile: tasks that are no MPI world, a rank that is killed.
code=0
srun --mpi=none -n 2 "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/none" >"$tmp/none.out" 2>&1 ||
    code=$?
[ $code = 1 ] && [ ! -e "$tmp/none" ] && grep -q '^fatal .*docs/batch.md' "$tmp/none.out" ||
    fail "without MPI: exit code $code: $(cat "$tmp/none.out")"
code=0
srun --mpi=pmix -n 2 --wait=2 "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/killed" \
    debug.fault=kill debug.fault_rank=1 debug.fault_at='step 2, losses' >"$tmp/killed.out" 2>&1 ||
    code=$?
[ $code = 137 ] && grep -q 'task 1: Killed' "$tmp/killed.out" ||
    fail "a rank is killed: exit code $code: $(cat "$tmp/killed.out")"

is_over() {
    scontrol show job "$job" | grep -qE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT)'
}
slurm_until 100 'the end of the job' is_over

cat "$tmp/slurm.out"
scontrol show job "$job" | grep -q 'JobState=COMPLETED ' || fail "$(scontrol show job "$job")"
scontrol show job "$job" | grep -q 'Restarts=1 ' || fail "$(scontrol show job "$job")"
[ "$(sed -n 's/^exit code //p' "$tmp/slurm.out" | xargs)" = '75 0' ] || fail 'not saved and done'
grep -q '^mesh  *2 ranks .* on 1 node' "$tmp/slurm.out" || fail 'not a world of two ranks'
[ "$(checkpoints slurm)" = 8 ] || fail "checkpoints: $(checkpoints slurm)"
same plain slurm 0
echo ok
