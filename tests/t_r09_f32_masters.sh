# Weights in BF16, a learning rate whose steps vanish in it, a resume after every step: the F32
#TEST timeout=100 cores=2
# masters keep all of it.
. tests/lib_resume.sh
make_run
set -- train.compute_dtype=bf16 optimizer.lr=1e-7 optimizer.min_lr=0 optimizer.warmup_steps=0 \
    debug.param_hash=true topology.ep=2

first whole 2 5 "$@"
for step in 1 2 3 4 5; do
    first parts 2 $step "$@"
    [ $step != 1 ] || start=$(hash_of parts)
done
resumed_at parts 4
same_end whole parts
[ "$start" != "$(hash_of whole)" ] || fail 'the steps have changed nothing'
