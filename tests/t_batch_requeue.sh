# Below stubs of Slurm: scripts/train.sbatch requeues a job that ends with exit code 75, but for one
#TEST timeout=20
# that comes no further from start to start, which would go on for ever.
. tests/lib_test.sh
mkdir "$tmp/bin" "$tmp/my run" "$tmp/my run/checkpoints"
PATH=$tmp/bin:$PATH
cat >"$tmp/run.yaml" <<YAML
base: $PWD/tests/tiny.yaml
run: {dir: "$tmp/my run"}
data: {train: nowhere.tok}
YAML

# A run that saves the step it is told, if any, and ends with a code.
cat >"$tmp/bin/srun" <<SH
[ -z "\$SAVES" ] || ln -sfn "step-\$SAVES" "$tmp/my run/checkpoints/latest"
exit "\$CODE"
SH
echo "echo \"requeue \$2\" >>'$tmp/asked'" >"$tmp/bin/scontrol"
chmod +x "$tmp/bin/srun" "$tmp/bin/scontrol"

# start RESTARTS SAVES CODE WANTED: what is asked of Slurm after such a start.
start() {
    : >"$tmp/asked"
    code=0
    SLURM_RESTART_COUNT=$1 SAVES=$2 CODE=$3 SLURM_JOB_ID=7 SLURM_JOB_NODELIST=here \
        SLURM_CPUS_PER_TASK=1 DSV3=$dsv3 bash scripts/train.sbatch "$tmp/run.yaml" >"$tmp/out" ||
        code=$?
    [ $code = "$3" ] && [ "$(cat "$tmp/asked")" = "$4" ] ||
        fail "restart $1, saves '$2', code $3: exit code $code, '$(cat "$tmp/asked")'"
}
start '' '' 75 'requeue 7' # ended in its start-up; no checkpoint yet
start 3 '' 75 ''
grep -q 'not requeued: no step' "$tmp/out" || fail "no reason: $(cat "$tmp/out")"
start 3 00000008 75 'requeue 7'
start 2 00000008 75 'requeue 7'
start 9 00000008 75 ''
start 9 00000016 75 'requeue 7'
start 0 00000024 0 ''
start 0 00000032 70 ''
echo ok
