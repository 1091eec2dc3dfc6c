# However a run ends, after a save or with one, its exit code is right, MPI and HDF5 have nothing to
#TEST timeout=60 cores=2
# complain about, and other programs open every file.
. tests/lib_train.sh
. tests/lib_faulty.sh
make_run
saving="$small checkpoint.keep_last=0 checkpoint.file_bytes=500000 train.eval_every=0"

# ends NAME CODE STEPS [key=value ...]: at least so many checkpoints are there.
ends() {
    name=$1 want=$2 n=$3 code=0
    shift 3
    faulty '' train "$name" 2 $saving train.steps=4 "$@" || code=$?
    [ $code = "$want" ] || fail "$name: exit code $code, expected $want: $(cat "$tmp/$name.err")"
    ! grep -i 'finalize\|HDF5-DIAG\|MPI_ERR\|memory.*given back' "$tmp/$name.out" || fail "$name"
    [ "$(wc -l <"$tmp/$name.err")" = $((want > 0 && want != 75)) ] ||
        fail "$name: $(cat "$tmp/$name.err")"
    nothing_left "$name"
    files=$(ls "$tmp/$name"/checkpoints/step-????????/*.h5)
    [ "$(echo "$files" | grep -c tensors-00000)" -ge "$n" ] || fail "$name: not $n checkpoints"
    [ "$(echo "$files" | wc -l)" -gt $((2 * n)) ] || fail "$name: one file a checkpoint"
    "$DSV3_BUILD/tests/h5_open" $files >"$tmp/$name.h5" || fail "$name: HDF5 cannot read a file"
    ! grep -v ': [1-9][0-9]* datasets, 0 objects left open$' "$tmp/$name.h5" || fail "$name"
    if command -v h5dump >/dev/null; then
        for file in $files; do h5dump -H "$file" >/dev/null || fail "$name: h5dump $file"; done
    fi
}
later ends normal 0 1 checkpoint.on_exit=true
later ends last 0 2 checkpoint.every=2
later ends last-twice 0 4 checkpoint.every=1 checkpoint.on_exit=true
later ends error 70 2 checkpoint.every=1 debug.bad_grad_step=4 train.max_nonfinite_steps=0 \
    debug.bad_grad_param=model.norm.weight
later ends early 75 1 train.steps=100000 run.exit_after=0.02 checkpoint.every_minutes=0.01
later ends crash 139 2 checkpoint.every=1 debug.fault=crash debug.fault_rank=1 \
    debug.fault_at='step 4, losses'
finish
echo ok
