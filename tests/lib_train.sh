# lib_train.sh - for tests of whole runs (". tests/lib_train.sh"): tiny data, a tiny model of the full
# architecture, and a way to train it on N ranks. Needs DSV3_BUILD and DSV3_TEST_TMP (tests/run).
set -eu

tmp=$DSV3_TEST_TMP
dsv3=$DSV3_BUILD/dsv3

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Text of about 40 kB in documents of very different lengths, the same every time.
make_text() {
    awk 'BEGIN {
        srand(7); split("the of and to that in he shall unto for i his a lord they be is with", w, " ")
        for (d = 0; d < 60; d++) {
            n = 1 + int(rand() * rand() * 400)
            for (i = 0; i < n; i++) printf "%s%s", w[1 + int(rand() * rand() * 18)], i % 9 == 8 ? ".\n" : " "
            print "\n=====" } }' >"$tmp/text"
}

# The tiny model: every kind of layer, 4 groups of 2 experts, MTP depth 1.
make_run() {
    make_text
    "$DSV3_BUILD/dsv3-tokenize" --separator ===== --out "$tmp/train.tok.zst" \
        --heldout "$tmp/heldout.tok.zst" --heldout-fraction 0.1 "$tmp/text" >/dev/null
    cat >"$tmp/run.yaml" <<YAML
run: {seed: 1234, overwrite: true, dir: $tmp/run}
data: {train: $tmp/train.tok.zst, heldout: $tmp/heldout.tok.zst, sequence_length: 32}
model:
  vocab_size: 512
  hidden_size: 64
  num_hidden_layers: 4
  first_k_dense_replace: 1
  intermediate_size: 128
  moe_intermediate_size: 32
  num_attention_heads: 4
  q_lora_rank: 32
  kv_lora_rank: 16
  qk_nope_head_dim: 16
  qk_rope_head_dim: 8
  v_head_dim: 16
  n_routed_experts: 8
  n_shared_experts: 1
  num_experts_per_tok: 4
  n_group: 4
  topk_group: 2
  routed_scaling_factor: 2.5
  num_nextn_predict_layers: 1
  initializer_range: 0.02
  max_position_embeddings: 32
train: {steps: 5, global_batch: 8, micro_batch: 1, eval_every: 0, log_every: 5, loss_chunk_tokens: 24}
optimizer: {lr: 1e-3, min_lr: 1e-4, warmup_steps: 2, schedule: cosine}
debug: {poison_memory: true, token_hash: true}
YAML
}

# train NAME RANKS [section.key=value ...]: metrics in $tmp/NAME/metrics.jsonl, output in
# $tmp/NAME.out; the exit code is the program's.
train() {
    name=$1
    np=$2
    shift 2
    code=0
    timeout 120 mpirun --quiet --oversubscribe --bind-to none -np "$np" "$dsv3" train \
        "$tmp/run.yaml" "run.dir=$tmp/$name" "$@" </dev/null >"$tmp/$name.out" 2>&1 || code=$?
    return $code
}

must_train() {
    train "$@" || {
        cat "$tmp/$1.out" >&2
        fail "training $* ended with exit code $code"
    }
}

# same NAME1 NAME2 TOLERANCE: see tests/compare_metrics.
same() {
    perl tests/compare_metrics "$3" "$tmp/$1/metrics.jsonl" "$tmp/$2/metrics.jsonl" ||
        fail "$2 differs from $1"
}
