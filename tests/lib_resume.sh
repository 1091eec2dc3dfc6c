# lib_resume.sh - for tests of runs that are killed and go on (". tests/lib_resume.sh"). Variables
# of these functions have names of their own: sh has no local ones.
. tests/lib_train.sh

# killed NAME RANKS AT [key=value ...]: the last rank dies in step AT.
killed() {
    k_name=$1 k_np=$2 k_at=$3
    shift 3
    train "$k_name" "$k_np" "$@" debug.fault=kill debug.fault_rank=$((k_np - 1)) \
        debug.fault_at="step $k_at, optimizer" && fail "$k_name: was not killed"
    return 0
}

# first NAME RANKS STEPS [key=value ...]: the first steps of a run that does not know how long it
# will be, and a checkpoint of the last of them.
first() {
    f_name=$1 f_np=$2 f_steps=$3
    shift 3
    must_train "$f_name" "$f_np" train.steps="$f_steps" $open_end checkpoint.on_exit=true "$@"
}
open_end='optimizer.schedule=constant data.heldout=[]'

# resumed_at NAME STEP: its last part has begun behind that step.
resumed_at() {
    grep -q "^resume .*step-$(printf %08d "$2"): step $2, " "$tmp/$1.out" ||
        fail "$1 does not go on behind step $2: $(cat "$tmp/$1.out")"
}

# hash_of NAME: of all parameters, as debug.param_hash prints it.
hash_of() {
    sed -n 's/^parameters  hash: //p' "$tmp/$1.out"
}

# same_end A B: metrics and parameters, bit for bit.
same_end() {
    same "$1" "$2" 0
    [ "$(hash_of "$1")" = "$(hash_of "$2")" ] || fail "$2: other parameters than $1"
    [ -n "$(hash_of "$1")" ] || fail "$1: no hash"
}

# steps_of NAME FILE: what its steps have found, evaluations and times aside.
steps_of() {
    grep '"loss":' "$tmp/$1/metrics.jsonl" |
        grep -o '"\(step\|loss\|lr\|grad_norm\|token_hash\)":[^,}]*' >"$2"
}

# same_checkpoint A B STEP: state and tensors of two runs' checkpoints, bit for bit.
same_checkpoint() {
    "$DSV3_BUILD/dsv3-ckpt" diff "$tmp/$1/checkpoints/step-$(printf %08d "$3")" \
        "$tmp/$2/checkpoints/step-$(printf %08d "$3")" >"$tmp/$2.diff" || :
    grep -v '^config  *run\.\|^config  *debug\.' "$tmp/$2.diff" >&2 && fail "$2: not that of $1"
    return 0
}
