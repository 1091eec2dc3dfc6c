# The sequences that fill up the last round of an evaluation count nowhere: with and without such
#TEST timeout=100 cores=2
# evaluations the training is the same to the bit (counts, biases, balance loss, weights), and the
# held-out loss is that of the sequences alone, also with tp.
. tests/lib_train.sh
make_run
# 13 sequences of 32 and a bit: 3 short of two rounds of 8.
awk 'BEGIN { for (i = 0; i < 13 * 32 + 20; i++) printf "%c", 97 + i * i % 26 }' >"$tmp/text-13"
"$DSV3_BUILD/dsv3-tokenize" --out "$tmp/heldout-13.tok.zst" "$tmp/text-13" >/dev/null

# without_evals NAME: its report of steps alone, as run NAME-steps.
without_evals() {
    mkdir "$tmp/$1-steps"
    grep -v -e eval_loss -e param_hash "$tmp/$1/metrics.jsonl" >"$tmp/$1-steps/metrics.jsonl"
}
hash_of() {
    sed -n 's/.*\("param_hash":.*\),"time".*/\1/p' "$tmp/$1/metrics.jsonl" | grep .
}

options="train.steps=3 debug.param_hash=true debug.dump_step=3 data.heldout=$tmp/heldout-13.tok.zst"
while read -r mesh np more; do
    must_train "$mesh" "$np" $options train.eval_every=1 $more
    must_train "$mesh-never" "$np" $options data.heldout=[] $more
    without_evals "$mesh"
    without_evals "$mesh-never"
    same "$mesh-steps" "$mesh-never-steps" 0
    [ "$(hash_of "$mesh")" = "$(hash_of "$mesh-never")" ] ||
        fail "$mesh: evaluations change the training"
    grep -c '"eval_tokens": *416[,}]' "$tmp/$mesh/metrics.jsonl" | grep -qx 3 ||
        fail "$mesh: not 13 x 32 tokens: $(grep eval "$tmp/$mesh/metrics.jsonl")"
done <<MESHES
np1 1 train.micro_batch=8
tp2 4 train.micro_batch=4 topology.tp=2 topology.ep=4
MESHES

# The same loss without any fill-up: rounds of one sequence. F32 sums in another order: 1e-6.
must_train full 1 $options train.eval_every=1 train.micro_batch=1
same np1 full 1e-6
echo ok
