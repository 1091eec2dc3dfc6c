# A run that is killed and goes on is the unbroken run, bit for bit: learning rates, losses, tokens,
#TEST timeout=100 cores=2
# selection biases, evaluations, weights; and so are its last moments.
. tests/lib_resume.sh
make_run

# unbroken NAME RANKS [key=value ...]: 12 steps at once, and in three parts.
unbroken() {
    u_name=$1 u_np=$2
    shift 2
    set -- "$@" checkpoint.every=3 train.router_bias_speed=0.01 train.eval_every=3 \
        debug.param_hash=true train.eval_sequences=8 train.steps=12
    must_train "$u_name-whole" "$u_np" "$@"
    killed "$u_name-parts" "$u_np" 6 "$@"
    killed "$u_name-parts" "$u_np" 11 "$@"
    must_train "$u_name-parts" "$u_np" "$@"
    grep -q '^resume .*: step [69],' "$tmp/$u_name-parts.out" || fail "$u_name: begins anew"
    same_end "$u_name-whole" "$u_name-parts"
    same_checkpoint "$u_name-whole" "$u_name-parts" 12
}

later unbroken f32 4 topology.tp=2 topology.ep=4
later unbroken bf16 2 topology.ep=2 train.compute_dtype=bf16 optimizer.moments_dtype=bf16
later unbroken one 1 train.micro_batch=4 data.document_mask=true
finish
