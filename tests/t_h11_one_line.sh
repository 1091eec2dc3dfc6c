# Whatever the number of ranks that see or suffer a fault: one line, and it is the first cause.
#TEST timeout=120 cores=2
. tests/lib_train.sh
make_run

# One rank of eight fails: a crash, and a check that fails on it alone.
later fails 139 'fatal .rank 5/8 .*SIGSEGV' crash 8 debug.fault=crash debug.fault_rank=5 \
    debug.fault_at='step 2, shared forward of layer 2'
later fails 70 'fatal .rank 5/8 .*lm_head.weight is not finite' check 8 debug.bad_grad_step=2 \
    debug.bad_grad_rank=5 debug.bad_grad_param=lm_head.weight train.max_nonfinite_steps=0

# All eight meet the same: ids that the model does not know, a frame that was altered.
later fails 65 'largest id 256 .*vocabulary 256' ids 8 model.vocab_size=256
cp "$tmp/train.tok.zst" "$tmp/altered.tok.zst"
printf x | dd of="$tmp/altered.tok.zst" bs=1 seek=700 conv=notrunc status=none
later fails 65 'fatal .rank 0/8 .*altered.tok.zst: frame 0 .*is altered' altered 8 \
    data.train="$tmp/altered.tok.zst"
finish
echo ok
