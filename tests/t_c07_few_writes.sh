# A save makes few and large writes: as many as tensors, not as ranks times tensors, and
#TEST timeout=60 cores=2
# nine of ten bytes in pieces of a mebibyte or more, where tensors have as much.
. tests/lib_train.sh
. tests/lib_faulty.sh
make_run

# writes NAME: how many, MB, percent of the bytes in large ones, tensors of the checkpoint.
writes() {
    perl -e '
        my ($log, $manifest) = @ARGV;
        open my $in, "<", $log or die;
        while (<$in>) {
            my (undef, undef, $call, $bytes, undef, $path) = split;
            next if $call ne "write" || $path !~ /tensors/;
            $n++, $all += $bytes, $large += $bytes >= 1 << 20 ? $bytes : 0;
        }
        open $in, "<", $manifest or die;
        my $tensors = () = join("", <$in>) =~ /"name": ?"(?:model|exp_avg|exp_avg_sq)\//g;
        printf "%d %.0f %.1f %d\n", $n, $all / 1e6, 100 * $large / $all, $tensors;
    ' "$tmp/$1.log" "$tmp/$1/checkpoints/latest/manifest.json"
}
# few NAME RANKS LARGE_PERCENT [key=value ...]
few() {
    name=$1 np=$2 percent=$3
    shift 3
    faulty "FAULTY_LOG=$tmp/$name.log" must_train "$name" "$np" train.steps=1 \
        optimizer.warmup_steps=1 train.eval_every=0 checkpoint.on_exit=true "$@"
    set -- $(writes "$name")
    echo "$name: $1 writes, $2 MB, $3 % of them in large ones; $4 tensors"
    # The tensor itself; headers of many; a shard's border in the middle of one; and the bytes.
    [ "$4" -gt 100 ] && [ "$1" -le $(($4 + $4 / 16 + 10 * np + $2 / 4)) ] ||
        fail "$name: too many writes"
    [ "${3%.*}" -ge "$percent" ] || fail "$name: too small writes"
    grep -q '"ckpt_write_s"' "$tmp/$name/metrics.jsonl" || fail "$name: no time in the metrics"
    grep -q '^saved: .* MB in .* GB/s' "$tmp/$name.out" || fail "$name: no rate"
}
large="model.hidden_size=512 model.intermediate_size=1536 model.moe_intermediate_size=512
    model.vocab_size=4096 model.num_hidden_layers=2 data.sequence_length=16
    model.n_routed_experts=4 model.n_group=2 model.topk_group=1 model.num_experts_per_tok=2
    model.num_attention_heads=8 model.v_head_dim=64 debug.poison_memory=false"
few tiny1 1 0
few tiny8 8 0 topology.ep=4
few large4 4 90 $large topology.ep=4
echo ok
