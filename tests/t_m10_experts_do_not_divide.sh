# Experts, groups and ranks that do not fit together: one line with both numbers and exit code 78,
#TEST timeout=60 cores=2
# within 5 s on all ranks, before anything is taken or written.
. tests/lib_train.sh
make_run

# one_line NAME RANKS "KEY: MESSAGE" [section.key=value ...]: refused at once; nothing else is said.
one_line() {
    name=$1 np=$2 message=$3
    shift 3
    refused 78 ": $message\$" "$name" "$np" "$@"
    [ "$took" -le $((5 * ${DSV3_TIMEOUT_SCALE:-1})) ] || fail "$name: took $took s"
    [ "$(wc -l <"$tmp/$name.out")" = 1 ] || fail "$name: not one line: $said"
}

one_line ep3 3 'topology.ep: found 3, expected a divisor of model.n_routed_experts 8' \
    topology.ep=3 train.global_batch=9
one_line ep16 4 'topology.ep: found 16, expected a divisor of the number of ranks, 4' \
    topology.ep=16 model.n_routed_experts=16
one_line groups 4 'model.n_group: found 3, expected a divisor of model.n_routed_experts 8' \
    model.n_group=3
one_line top9 4 'model.num_experts_per_tok: found 9, expected at most model.n_routed_experts 8' \
    model.num_experts_per_tok=9
one_line kept5 4 'model.topk_group: found 5, expected at most model.n_group 4' model.topk_group=5
one_line top5 4 'model.num_experts_per_tok: found 5, expected at most 4: model.topk_group 2 x 2.*' \
    model.num_experts_per_tok=5
echo ok
