# dsv3 check: the ready files, JSON, exit codes, the reference page.
#TEST timeout=60
set -eu
dsv3=$DSV3_BUILD/dsv3
tmp=${DSV3_TEST_TMP:-$(mktemp -d)}
failed=0
fail() {
    echo "$1"
    failed=1
}
# expect CODE WHAT-STANDARD-ERROR-SAYS ARGUMENT...
expect() {
    code=$1 says=$2
    shift 2
    found=0
    "$dsv3" check "$@" >"$tmp/out" 2>"$tmp/err" || found=$?
    [ "$found" = "$code" ] || fail "check $*: exit code $found, expected $code"
    [ -z "$says" ] || grep -q -e "$says" "$tmp/err" ||
        fail "check $*: '$says' not in: $(cat "$tmp/err")"
    [ "$code" = 0 ] || [ ! -s "$tmp/out" ] || fail "check $*: a failure printed to stdout"
}

for model in configs/models/*.yaml; do expect 0 '' "$model"; done
expect 0 '' configs/runs/deepseek-v3-671b-2048gpu.yaml --ranks 2048
expect 0 '' configs/runs/moonlight-16b-8gpu.yaml --ranks 8
expect 0 '' configs/runs/moonlight-16b-1gpu.yaml --ranks 1
for ranks in 1 2 4 8; do expect 0 '' configs/runs/demo.yaml --ranks $ranks; done
grep -q 'global_batch 8 = micro_batch 1 x accumulation 1 x dp 8; 1024 tokens a step' "$tmp/out" ||
    fail 'the batch equation is not printed'

# What a run of the paper must state, with its source.
expect 0 '' configs/runs/deepseek-v3-671b-2048gpu.yaml train.mtp_loss_weight=0.3
for line in 'balance_loss_alpha: 0.0001 .*gpu.yaml:[0-9]' 'mtp_loss_weight: 0.3 .*# command line' \
    'routed_scaling_factor: 2.5 .*671b.yaml:[0-9]' 'beta2: 0.95 .*gpu.yaml:[0-9]' \
    'decay_all: false .*# default'; do
    grep -q "$line" "$tmp/out" || fail "not printed: $line"
done

# The resolved print is itself a configuration with the same hash.
sed '/^config hash/,$d' "$tmp/out" >"$tmp/again.yaml"
hash=$(grep '^config hash' "$tmp/out")
expect 0 '' "$tmp/again.yaml"
[ "$(grep '^config hash' "$tmp/out")" = "$hash" ] || fail 'the resolved print has another hash'

expect 0 '' configs/models/deepseek-v3-671b.yaml --json
for pair in '"params_total": 671026404352' '"params_active": 37552282624' \
    '"params_active_no_input_embedding": 36625603584' \
    '"params_active_no_embeddings": 35698924544' '"router_bias": 14848' \
    '"mtp_params": 11610067968' '"released_total": 684489845504' \
    '"exact": 260649' '"megatron": 259992' '"torchtitan": 285286'; do
    grep -q "$pair" "$tmp/out" || fail "not in the JSON object: $pair"
done

expect 0 'warning optimizer.warmup_steps: 20, but train.steps is 5' configs/runs/demo.yaml \
    train.steps=5
expect 78 'optimizer.lr: found fast' configs/runs/demo.yaml optimizer.lr=fast
expect 78 'expected a divisor of the number of ranks, 3' configs/runs/demo.yaml --ranks 3 \
    topology.tp=2
expect 78 'train.steps: missing' configs/models/demo.yaml --ranks 1
expect 78 'No such file' "$tmp/none.yaml"
expect 64 usage
expect 64 'unknown option --what' configs/runs/demo.yaml --what
expect 64 'expected a number of ranks' configs/runs/demo.yaml --ranks many
expect 64 'unknown option --reference' configs/runs/demo.yaml --reference

"$dsv3" check --reference | diff - configs/README.md ||
    fail 'configs/README.md is not what dsv3 check --reference prints'
exit $failed
