# A run that cannot be right is refused before its first step: the exit code says of what kind the
#TEST timeout=100 cores=2
# fault is, one message says where, all ranks end within seconds and nothing has been written.
. tests/lib_train.sh
make_run

# The configuration, with this number of ranks.
refused 78 'topology.ep: found 3, expected a divisor of the number of ranks, 4' ep3 4 topology.ep=3
refused 78 'found 12, expected a multiple of 16 = train.micro_batch 4 x dp 4' batch 4 \
    train.global_batch=12 train.micro_batch=4
refused 78 'debug.bad_grad_param none.weight: no such parameter' none 2 debug.bad_grad_step=1 \
    debug.bad_grad_param=none.weight
refused 78 'GiB a rank on 2 ranks of this machine, which has' memory 2 \
    model.moe_intermediate_size=262144 train.global_batch=8192 train.micro_batch=4096
mv "$tmp/run.yaml" "$tmp/away.yaml"
refused 78 'cannot read .*run.yaml: No such file' config 2
mv "$tmp/away.yaml" "$tmp/run.yaml"

# The data.
refused 66 'missing.tok.zst: No such file' missing 2 data.train="$tmp/missing.tok.zst"
head -c 2000 "$tmp/train.tok.zst" >"$tmp/cut.tok.zst"
refused 65 'cut.tok.zst: truncated' cut 2 data.train="$tmp/cut.tok.zst"
refused 65 'largest id 256 .*vocabulary 256 (model.vocab_size)' vocab 2 topology.tp=2 \
    model.vocab_size=256

# An altered shard is found when its frame is read, by all who read it, before any step.
cp "$tmp/train.tok.zst" "$tmp/altered.tok.zst"
printf x | dd of="$tmp/altered.tok.zst" bs=1 seek=700 conv=notrunc status=none
code=0
train altered 2 data.train="$tmp/altered.tok.zst" || code=$?
[ $code = 65 ] || fail "an altered shard: exit code $code"
grep fatal "$tmp/altered.out" | grep -qv 'altered.tok.zst: frame 0 .*is altered' &&
    fail "an altered shard: $(cat "$tmp/altered.out")"
grep -q '"loss"' "$tmp/altered/metrics.jsonl" && fail 'an altered shard was trained on'

# Another run's results stay as they are, with one message, unless asked for.
state_of() {
    ls -l --time-style=full-iso "$1"
    cksum "$1/metrics.jsonl"
}
must_train first 2 train.steps=2 data.heldout=[]
before=$(state_of "$tmp/first")
code=0
train again 2 run.overwrite=false run.dir="$tmp/first" || code=$?
[ $code = 78 ] || fail "run.dir not empty: exit code $code"
[ "$(grep -c 'fatal.*first is not empty' "$tmp/again.out")" = 1 ] ||
    fail "run.dir not empty: $(cat "$tmp/again.out")"
[ "$before" = "$(state_of "$tmp/first")" ] || fail 'a refused run has touched run.dir'

# A scheduler's task that MPI does not know of would train alone over the same files.
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

# More threads than cores: not refused, but said.
threads=$(($(getconf _NPROCESSORS_ONLN) + 1))
must_train crowded 1 run.threads=$threads train.steps=1 optimizer.warmup_steps=1 data.heldout=[]
grep -q "warning run.threads $threads lowered to $((threads - 1))" "$tmp/crowded.out" ||
    fail "no warning: $(cat "$tmp/crowded.out")"
must_train roomy 1 run.threads=1 train.steps=1 optimizer.warmup_steps=1 data.heldout=[]
grep warning "$tmp/roomy.out" && fail 'a warning for one thread'
echo ok
