# lib_faulty.sh - for tests of checkpoints on a disk that fails, is slow, or is watched
# (". tests/lib_faulty.sh" after lib_train.sh): tests/preload/faulty_io.c, and checkpoints compared.

# A model with a layer of every kind that takes little time to train and to save.
small="model.hidden_size=32 model.num_hidden_layers=2 model.n_routed_experts=4 model.n_group=2
    model.topk_group=1 model.num_experts_per_tok=2 data.sequence_length=16 train.global_batch=4
    optimizer.schedule=constant optimizer.warmup_steps=1"

# faulty "FAULTY_NAME=VALUE ..." COMMAND ...: the command with such a disk. It syncs at once unless
# FAULTY_SYNC_MS says otherwise; how long a real one takes is not what is tested.
faulty() {
    settings=$1
    shift
    (
        export FAULTY_SYNC_MS=0 ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
        [ -z "$settings" ] || export $settings
        export LD_PRELOAD="$DSV3_BUILD/tests/faulty_io.so"
        "$@"
    )
}

# checkpoints_of NAME: a line per checkpoint of that run, all of which have to be whole.
checkpoints_of() {
    "$DSV3_BUILD/tests/ckpt_digest" "$tmp/$1"/checkpoints/step-????????
}

# only_those_of NAME1 NAME2: every checkpoint of run NAME2 is whole and is what run NAME1 had there.
# NAME1's are in $tmp/NAME1.digests.
only_those_of() {
    checkpoints_of "$2" >"$tmp/$2.digests" || fail "$2: a checkpoint that is not whole"
    ! grep -vxFf "$tmp/$1.digests" "$tmp/$2.digests" || fail "$2: a checkpoint that $1 has not"
}
