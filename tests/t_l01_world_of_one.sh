# A scheduler's task that MPI does not know of would train alone over the same files: it refuses,
#TEST timeout=30 cores=1
# with the advice that helps, and writes nothing.
. tests/lib_train.sh
make_run
slurm='SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_PROCID=1'
for variables in "$slurm" PMI_SIZE=4; do
    code=0
    env -u OMPI_COMM_WORLD_SIZE $variables "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/alone" \
        >"$tmp/alone.out" 2>&1 || code=$?
    [ $code = 64 ] || fail "$variables: exit code $code: $(cat "$tmp/alone.out")"
    grep -q 'scheduler says 4 tasks .*MPI says 1.*--mpi=pmix' "$tmp/alone.out" ||
        fail "$variables: $(cat "$tmp/alone.out")"
    [ ! -e "$tmp/alone" ] || fail "$variables: wrote $tmp/alone"
done

# One task is one task, and below mpirun the variables speak of mpirun's daemons.
env SLURM_STEP_NUM_TASKS=1 "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/one" train.steps=1 \
    optimizer.warmup_steps=1 >"$tmp/one.out" 2>&1 || fail "one task: $(cat "$tmp/one.out")"
export SLURM_STEP_NUM_TASKS=4
must_train below 2 train.steps=1 optimizer.warmup_steps=1
echo ok
