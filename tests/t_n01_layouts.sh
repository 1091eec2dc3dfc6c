# Every mesh over 1, 2, 4 and 8 ranks trains the same model: loss and gradient norm of the first 5
# TEST timeout=200 cores=2
# steps within 1e-5 of one rank (F32 sums in another order), routing equal, same tokens.
. tests/lib_train.sh
make_run
dump='debug.dump_step=5 train.eval_every=5'

must_train np1 1 $dump
while read -r name np options; do
    must_train "$name" "$np" $options $dump
    same np1 "$name" 1e-5
done <<LAYOUTS
dp2 2
tp2 2 topology.tp=2
dp2-ep2 2 topology.ep=2
dp2-tp2-ep1 4 topology.tp=2
dp2-tp2-ep2 4 topology.tp=2 topology.ep=2
dp2-tp2-ep4 4 topology.tp=2 topology.ep=4
dp4-ep4 4 topology.ep=4
dp4-tp2-ep8 8 topology.tp=2 topology.ep=8 train.micro_batch=2
dp2-tp4 8 topology.tp=4 train.micro_batch=2
tp2-ep2-nodes 4 topology.tp=2 topology.ep=4 topology.ranks_per_node=2
LAYOUTS

# With half of the first norm as clip, also the steps after it agree: the norm counts every element
# once.
clip=$(perl -MJSON::PP -ne '$r = decode_json($_);
    print $r->{grad_norm} / 2 if defined $r->{loss} && $r->{step} == 1' "$tmp/np1/metrics.jsonl")
must_train clip-np1 1 optimizer.clip="$clip"
for mesh in 'tp=2 topology.ep=2' 'tp=2 topology.ep=4'; do
    must_train clip-mesh 4 topology.$mesh optimizer.clip="$clip"
    same clip-np1 clip-mesh 1e-5
done

# Without shared experts.
must_train alone-np1 1 model.n_shared_experts=0
must_train alone-mesh 4 model.n_shared_experts=0 topology.tp=2 topology.ep=4
same alone-np1 alone-mesh 1e-5

# Within a node and between nodes are told apart.
grep -q '"bytes_inter": *0[,}]' "$tmp/dp4-ep4/metrics.jsonl" || fail "one node, but bytes_inter"
grep '"loss"' "$tmp/tp2-ep2-nodes/metrics.jsonl" | grep -q '"bytes_inter": *0[,}]' &&
    fail "two nodes, but no bytes_inter"
echo ok
