# A run that starts from imported weights has the loss that transformers computes with them.
#TEST timeout=60
. tests/lib_train.sh

# The learning rate is too small for any weight to change before the evaluation.
for golden in v3 v3_eps v2; do
    "$DSV3_BUILD/dsv3-ckpt" import "tests/golden/hf/$golden" "$tmp/$golden.in" >/dev/null
    cat "tests/golden/hf/$golden/tokens.u16" "tests/golden/hf/$golden/tokens.u16" >"$tmp/train.u16"
    cat >"$tmp/run.yaml" <<YAML
base: $tmp/$golden.in/model.yaml
run: {dir: $tmp/run, init_from: $tmp/$golden.in}
data: {train: $tmp/train.u16, heldout: $PWD/tests/golden/hf/$golden/tokens.u16, sequence_length: 24}
train: {steps: 1, global_batch: 4, router_bias_speed: 0}
optimizer: {lr: 1e-30, weight_decay: 0}
checkpoint: {every_minutes: 0}
YAML
    must_train $golden 2 topology.ep=2
    loss=$(sed -n 's/.*"eval_loss": *\([0-9.e+-]*\).*/\1/p' "$tmp/$golden/metrics.jsonl")
    # F32 on both sides, sums in another order.
    perl -e 'my ($loss, $want) = @ARGV; exit !(abs($loss - $want) <= 1e-6 * $want)' "$loss" \
        "$(cat "tests/golden/hf/$golden/loss.txt")" ||
        fail "$golden: loss $loss, expected $(cat "tests/golden/hf/$golden/loss.txt")"
    echo "$golden: loss $loss, transformers $(cat "tests/golden/hf/$golden/loss.txt")"

    # And what the run saved is what it was given, written by two ranks.
    "$DSV3_BUILD/dsv3-ckpt" export "$tmp/$golden/checkpoints/latest" "$tmp/$golden.hf" \
        --dtype f32 >/dev/null
    tests/safetensors_edit list "tests/golden/hf/$golden"/*.safetensors >"$tmp/want"
    tests/safetensors_edit list "$tmp/$golden.hf"/*.safetensors | diff "$tmp/want" - ||
        fail "$golden: other weights after import, run and export"
    for key in bos eos pad; do
        want=$(grep "\"${key}_token_id\"" "tests/golden/hf/$golden/config.json")
        [ "$(grep "\"${key}_token_id\"" "$tmp/$golden.hf/config.json")" = "$want" ] ||
            fail "$golden: another ${key}_token_id"
    done
done
