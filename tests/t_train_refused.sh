# A run that cannot be right is refused before its first step: the exit code says of what kind the
#TEST timeout=150 cores=1
# fault is, one line says where, all ranks end within seconds and nothing is trained.
. tests/lib_train.sh
make_run

# untrained CODE WORDS NAME RANKS [section.key=value ...]: fails before the first step.
untrained() {
    fails "$@"
    ! grep -q '"loss"' "$tmp/$3/metrics.jsonl" 2>/dev/null || fail "$3: has trained"
}
# on_meshes CHECK CODE WORDS NAME [section.key=value ...]
on_meshes() {
    check=$1 code=$2 words=$3 name=$4
    shift 4
    later "$check" "$code" "$words" "$name-1" 1 "$@"
    later "$check" "$code" "$words" "$name-2" 2 topology.tp=2 "$@"
    later "$check" "$code" "$words" "$name-4" 4 topology.tp=2 topology.ep=4 "$@"
}

# The configuration, with this number of ranks.
later refused 78 'topology.ep: found 8, expected a divisor of the number of ranks, 4' ep8 4 \
    topology.ep=8
later refused 78 'found 12, expected a multiple of 16 = train.micro_batch 4 x dp 4' batch 4 \
    train.global_batch=12 train.micro_batch=4
later refused 78 'debug.bad_grad_param none.weight: no such parameter' none 2 \
    debug.bad_grad_step=1 debug.bad_grad_param=none.weight
later refused 78 'GiB for 2 ranks (.*a rank), more than the .* GiB of' memory 2 \
    model.moe_intermediate_size=262144 train.global_batch=8192 train.micro_batch=4096
finish
mv "$tmp/run.yaml" "$tmp/away.yaml"
refused 78 'run.yaml: cannot be read: No such file' config 2
mv "$tmp/away.yaml" "$tmp/run.yaml"

# The data: not there, cut off, with other ids, too short for a sequence or a batch.
head -c 2000 "$tmp/train.tok.zst" >"$tmp/cut.tok.zst"
mkdir "$tmp/none"
head -c 20 "$tmp/text" >"$tmp/short"
head -c 200 "$tmp/text" >"$tmp/few"
for name in short few; do
    "$DSV3_BUILD/dsv3-tokenize" --out "$tmp/$name.tok.zst" "$tmp/$name" >/dev/null
done
on_meshes refused 66 'missing.tok.zst: No such file' missing data.train="$tmp/missing.tok.zst"
on_meshes refused 66 'none: no \*.tok.zst' unreadable data.train="$tmp/none"
on_meshes refused 65 'cut.tok.zst: truncated' cut data.train="$tmp/cut.tok.zst"
on_meshes refused 65 'largest id 256 .*vocabulary 256 (model.vocab_size)' vocab \
    model.vocab_size=256
on_meshes refused 65 'short.tok.zst: .* tokens found, a sample needs 33' short \
    data.train="$tmp/short.tok.zst"
on_meshes refused 65 '6 sequences of 32 tokens, one batch takes 8 (train.global_batch)' few \
    data.train="$tmp/few.tok.zst"

# An altered shard is found when its frame is read, by all who read it, before any step.
cp "$tmp/train.tok.zst" "$tmp/altered.tok.zst"
printf x | dd of="$tmp/altered.tok.zst" bs=1 seek=700 conv=notrunc status=none
on_meshes untrained 65 \
    'train data: .*altered.tok.zst: frame 0 .*is altered.*; step 1, data$' altered \
    data.train="$tmp/altered.tok.zst"
cp "$tmp/heldout.tok.zst" "$tmp/altered-too.tok.zst"
printf x | dd of="$tmp/altered-too.tok.zst" bs=1 seek=700 conv=notrunc status=none
on_meshes fails 65 'heldout data: .*altered-too.tok.zst: frame 0 .*is altered' eval \
    data.heldout="$tmp/altered-too.tok.zst" train.steps=2

# No room for the metrics, or no place.
for ranks in 1 2 4; do
    mkdir "$tmp/full-$ranks"
    ln -s /dev/full "$tmp/full-$ranks/metrics.jsonl"
done
on_meshes fails 74 'full-[124]/metrics.jsonl: No space left' full
on_meshes refused 74 'run.dir: cannot .*few/run: Not a directory' place run.dir="$tmp/few/run"
finish

# Another run's results stay as they are, with one message, unless asked for.
state_of() {
    ls -l --time-style=full-iso "$1"
    cksum "$1/metrics.jsonl"
}
must_train first 2 train.steps=2 data.heldout=[]
before=$(state_of "$tmp/first")
fails 78 'fatal.*first is not empty' again 2 run.overwrite=false run.dir="$tmp/first"
[ "$before" = "$(state_of "$tmp/first")" ] || fail 'a refused run has touched run.dir'
echo ok
