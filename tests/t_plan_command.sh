# dsv3 plan: what it prints for people and as JSON, and how it refuses.
#TEST timeout=60
set -eu
dsv3=$DSV3_BUILD/dsv3
tmp=${DSV3_TEST_TMP:-$(mktemp -d)}
large=configs/runs/deepseek-v3-671b-2048gpu.yaml
failed=0
fail() {
    echo "$1"
    failed=1
}
# expect CODE LINES PATTERN ARGUMENT...: exit code, lines on standard error, one with PATTERN
expect() {
    code=$1 lines=$2 says=$3
    shift 3
    found=0
    "$dsv3" plan "$@" >"$tmp/out" 2>"$tmp/err" || found=$?
    [ "$found" = "$code" ] || fail "plan $*: exit code $found, expected $code"
    [ "$(wc -l <"$tmp/err")" = "$lines" ] || fail "plan $*: not $lines lines: $(cat "$tmp/err")"
    [ "$lines" = 0 ] || grep -q -e "$says" "$tmp/err" ||
        fail "plan $*: '$says' not in: $(cat "$tmp/err")"
    [ "$code" = 0 ] || [ ! -s "$tmp/out" ] || fail "plan $*: a failure printed to stdout"
}
printed() {
    grep -q -e "$1" "$tmp/out" || fail "not printed: $1"
}
# json EXPRESSION: true of the JSON object $p
json() {
    perl -MJSON::PP -e 'local $/; my $p = decode_json(<STDIN>);
        sub sum { my ($o, $key) = @_; my $n = 0; $n += $_->{$key} for @$o; $n }
        exit !do { '"$1"' }' <"$tmp/out" || fail "not true: $1"
}

expect 0 0 '' "$large" --ranks 2048
printed '2048 ranks on 256 nodes of 8: dp 1024 x tp 2, experts edp 32 x ep 64'
printed '15360 sequences = micro-batch 1 x 15 accumulated x dp 1024, 62,914,560 tokens'
for role in weights gradients optimizer activations staging total; do
    printed "^  $role  *[0-9,]\{5,\}  *[0-9,]\{5,\}\$"
done
printed '^  all_to_all_rows  ep  *90,942,996,480  *727,543,971,840$'
expect 0 0 '' configs/runs/demo.yaml --ranks 4
printed '4 ranks on 1 node of 4 (assumed: topology.ranks_per_node is not set)'
expect 0 0 '' configs/runs/demo.yaml --ranks 4 topology.ranks_per_node=3 topology.tp=2
printed '^ranks of [2-4] kinds'

expect 0 0 '' "$large" --ranks 2048 --json
json '$p->{ranks} == 2048 && $p->{mesh}{dp} == 1024 && $p->{mesh}{tp} == 2 && $p->{mesh}{ep} == 64
    && $p->{mesh}{edp} == 32 && $p->{mesh}{nodes} == 256'
for bytes in per_rank_bytes per_rank_bytes_worst; do
    json "my \$b = \$p->{$bytes}; \$b->{total} == \$b->{weights} + \$b->{gradients}
        + \$b->{optimizer} + \$b->{activations} + \$b->{staging} + \$b->{checkpoint}
        && keys %\$b == 7"
done
json 'my $a = $p->{activation_bytes};
    $p->{per_rank_bytes}{activations} == $a->{state} + $a->{stack} + $a->{scratch}'
json '$p->{parameters}{total} == 682636472320 && $p->{parameters}{held} == 19695529984'
json 'my $t = $p->{traffic_bytes_per_step}; my $total = delete $t->{total};
    $total->{inter} == sum([values %$t], "inter") && $total->{intra} == sum([values %$t], "intra")
    && sum([values %{$t->{reduce_scatter}{axes}}], "inter") == $t->{reduce_scatter}{inter}
    && join(" ", sort keys %$t) eq
       "all_gather all_reduce all_reduce_host all_to_all all_to_all_rows reduce_scatter"'
json 'my $t = $p->{traffic_bytes_per_step}{total};
    $p->{traffic_bytes_per_step_all_ranks}{intra} == 2048 * $t->{intra}'
json '@{$p->{rank_kinds}} == 1 && $p->{rank_kinds}[0]{ranks} == 2048'
expect 0 0 '' configs/runs/demo.yaml --ranks 4 topology.ranks_per_node=3 topology.tp=2 --json
json 'sum($p->{rank_kinds}, "ranks") == 4 && @{$p->{rank_kinds}} > 1'

# Whether it fits, and what would. The meshes that are listed are those that a plan of each fits.
demo=configs/runs/demo.yaml
verdict() {
    found=0
    "$dsv3" plan "$@" >"$tmp/out" 2>"$tmp/err" || found=$?
    [ "$found" = "$code" ] || fail "plan $*: exit code $found, expected $code: $(cat "$tmp/err")"
}
expect 0 0 '' $demo --ranks 4
printed '^\(fits\|does not fit\): .* GiB a rank (4 ranks of a node share [^)]*), largest role '
code=78 verdict "$large" --ranks 2048 --memory 141GB
printed '^does not fit: 180.06 of 131.32 GiB a rank (--memory), largest role gradients 73.37 GiB$'
printed '^  *8  *64  *256  *32  *100.63  gradients '
code=0 verdict configs/runs/moonlight-16b-8gpu.yaml --ranks 8 --memory 80GB
printed '^fits: 63.04 of 74.51 GiB .* 14.86 GiB; 104.25 GiB if all tokens choose one rank$'
code=78 verdict $demo --ranks 4 --memory 1e6
printed '^no mesh of 4 ranks fits'
code=78 verdict $demo --ranks 4 --memory 150MB --json
json 'my ($v, $b) = @$p{qw(verdict per_rank_bytes)};
    !$v->{fits} && $v->{memory_bytes} == 150e6 && $v->{memory_of} eq "--memory"
    && $v->{per_rank_bytes} == delete $b->{total}
    && !grep { $_ > $b->{$v->{largest_role}} } values %$b'
# meshes EXPRESSION: tp, ep and bytes of a rank, of each plan in the list $p
meshes() {
    perl -MJSON::PP -e 'local $/; my $p = decode_json(<STDIN>); print "@$_\n" for '"$1" <"$tmp/out"
}
meshes 'map { [@$_{qw(tp ep per_rank_bytes)}] } @{$p->{verdict}{meshes}}' | sort >"$tmp/listed"
for tp in 1 2 4; do
    for ep in 1 2 4; do
        code=0 verdict $demo --ranks 4 topology.tp=$tp topology.ep=$ep --json
        meshes 'grep { $_->[2] <= 150e6 } [@{$p->{mesh}}{qw(tp ep)}, $p->{per_rank_bytes}{total}]'
    done
done | sort >"$tmp/planned"
cmp -s "$tmp/listed" "$tmp/planned" || fail "$(diff "$tmp/listed" "$tmp/planned")"
n=$(wc -l <"$tmp/listed")
[ "$n" -gt 2 ] && [ "$n" -lt 8 ] || fail "$n meshes are listed"
for size in 80G 0 -1 nan 0x10 80XiB 1e30 ''; do
    expect 64 1 'expected bytes, as 80GiB, 141GB or 80e9' $demo --ranks 4 --memory "$size"
done

expect 64 1 '^usage: dsv3 plan FILE --ranks N'
expect 64 1 'dsv3 plan: --ranks is missing' "$large"
expect 64 1 'found many, expected a number of ranks' "$large" --ranks many
expect 64 1 'found nothing, expected a number of ranks' "$large" --ranks
expect 64 1 'found 0, expected a number of ranks' "$large" --ranks 0
expect 64 1 'unknown option --what' "$large" --ranks 2048 --what
expect 78 4 'train.global_batch.*2047 ranks' "$large" --ranks 2047 topology.tp=1 topology.ep=1
expect 78 1 'topology.ep: found 3, expected a divisor of the number of ranks, 4' \
    configs/runs/demo.yaml --ranks 4 topology.ep=3 model.n_routed_experts=24
expect 78 1 'optimizer.lr: found fast' configs/runs/demo.yaml --ranks 1 optimizer.lr=fast
expect 78 1 'No such file' "$tmp/none.yaml" --ranks 1
exit $failed
