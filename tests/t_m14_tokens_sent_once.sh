# With tp every rank owns other tokens, so none reaches an expert twice: loss, gradient norm and
#TEST timeout=60 cores=2
# counts of the experts are those of one rank, the counts add up to tokens x top-k, not x tp.
. tests/lib_train.sh
make_run

must_train np1 1 debug.dump_step=1
while read -r name np options; do
    must_train "$name" "$np" $options debug.dump_step=1
    same np1 "$name" 1e-5 # F32 sums in another order
    perl -MJSON::PP -MList::Util=sum -ne '
        my $r = decode_json($_);
        for (@{$r->{expert_count} // []}) { print sum(@$_), " " }' \
        "$tmp/$name/metrics.jsonl" >"$tmp/sums"
    # 8 x 32 tokens, top 4; three layers and the MTP module's.
    [ "$(cat "$tmp/sums")" = '1024 1024 1024 1024 ' ] ||
        fail "$name: tokens over the experts of each layer: $(cat "$tmp/sums")"
done <<MESHES
tp2-ep2 2 topology.tp=2 topology.ep=2
tp2-ep1 2 topology.tp=2
tp4-ep4 4 topology.tp=4 topology.ep=4
MESHES
echo ok
