# Experts, groups and ranks that do not fit together: one line with both numbers and exit code 78,
#TEST timeout=60 cores=2
# within 5 s on all ranks, before anything is taken or written.
. tests/lib_train.sh
make_run

# refused NAME RANKS "KEY: MESSAGE" [section.key=value ...]
refused() {
    name=$1 np=$2 message=$3
    shift 3
    code=0 begin=$(date +%s)
    train "$name" "$np" "$@" || code=$?
    took=$(($(date +%s) - begin))
    [ $code = 78 ] || fail "$name: exit code $code, expected 78: $(cat "$tmp/$name.out")"
    [ "$took" -le 5 ] || fail "$name: took $took s"
    [ "$(wc -l <"$tmp/$name.out")" = 1 ] || fail "$name: not one line: $(cat "$tmp/$name.out")"
    grep -q ": $message\$" "$tmp/$name.out" || fail "$name: $(cat "$tmp/$name.out")"
    [ ! -e "$tmp/$name" ] || fail "$name: left $tmp/$name behind"
}

refused ep3 3 'topology.ep: found 3, expected a divisor of model.n_routed_experts 8' \
    topology.ep=3 train.global_batch=9
refused ep16 4 'topology.ep: found 16, expected a divisor of the number of ranks, 4' \
    topology.ep=16 model.n_routed_experts=16
refused groups 4 'model.n_group: found 3, expected a divisor of model.n_routed_experts 8' \
    model.n_group=3
refused top9 4 'model.num_experts_per_tok: found 9, expected at most model.n_routed_experts 8' \
    model.num_experts_per_tok=9
refused kept5 4 'model.topk_group: found 5, expected at most model.n_group 4' model.topk_group=5
refused top5 4 'model.num_experts_per_tok: found 5, expected at most 4: model.topk_group 2 x 2.*' \
    model.num_experts_per_tok=5
echo ok
