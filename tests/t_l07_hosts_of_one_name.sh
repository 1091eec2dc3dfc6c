# Nodes are what shares memory, whatever the hosts are called: two of mpirun's daemons, to which
#TEST timeout=100 cores=1
# every rank reports the same host name, are two nodes; and so the traffic is counted.
. tests/lib_train.sh
make_run

make_agent
set -- train.steps=2 topology.ep=4
code=0
mpirun --mca plm_rsh_agent "$tmp/agent" \
    --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo --host 127.0.0.2:2,127.0.0.3:2 -np 4 \
    "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/two" "$@" --verbose \
    </dev/null >"$tmp/two.out" 2>&1 || code=$?
[ $code = 0 ] || fail "two nodes: exit code $code: $(cat "$tmp/two.out")"
must_train one 4 "$@"
must_train told 4 "$@" topology.ranks_per_node=2

nodes() {
    sed -n 's/^mesh .* on \([0-9]*\) node.*/\1/p' "$tmp/$1.out"
}
bytes() {
    sed -n 's/.*\("bytes_intra":[0-9]*,"bytes_inter":[0-9]*\).*/\1/p' "$tmp/$1/metrics.jsonl"
}
[ "$(nodes one)" = 1 ] || fail "one machine: $(nodes one) nodes"
[ "$(nodes two)" = 2 ] || fail "two hosts of one name: $(nodes two) nodes"
grep -q '^node    1 .*: ranks 2-3$' "$tmp/two.out" || fail "no nodes: $(cat "$tmp/two.out")"
[ "$(bytes two)" = "$(bytes told)" ] || fail "bytes: $(bytes two), expected $(bytes told)"
[ "$(bytes two)" != "$(bytes one)" ] || fail "nothing went to the other node: $(bytes one)"
same one two 1e-5
echo ok
