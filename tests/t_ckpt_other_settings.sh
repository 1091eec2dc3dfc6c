# A run may go on with other settings than the checkpoint was made with: other shapes, vocabulary
#TEST timeout=100 cores=2
# or data are refused with every difference, other settings are told and taken; weights
# alone start a new run, and what is not loaded is listed.
. tests/lib_resume.sh
make_run
set -- topology.ep=2

first run 2 4 "$@"
before=$(find "$tmp/run" -type f -exec ls -l --time-style=full-iso {} +)

# differs CODE WORDS ... -- [key=value ...]: refused, with all of the words.
differs() {
    words=
    while [ "$1" != -- ]; do
        words="$words$1
"
        shift
    done
    shift
    code=0
    train run 2 train.steps=6 $open_end topology.ep=2 "$@" || code=$?
    [ $code = 78 ] || fail "$*: exit code $code: $(cat "$tmp/run.err")"
    printf %s "$words" | while read -r line; do
        grep -q -e "$line" "$tmp/run.err" || fail "$*: '$line' is not in: $(cat "$tmp/run.err")"
    done
    [ "$before" = "$(find "$tmp/run" -type f -exec ls -l --time-style=full-iso {} +)" ] ||
        fail "$*: something was written"
}
differs 'model.hidden_size: 64 in the checkpoint, 128 now' \
    'model.kv_lora_rank: 16 in the checkpoint, 8 now' \
    'step-00000004 does not fit this run: 2' \
    -- model.hidden_size=128 model.kv_lora_rank=8
differs 'model.vocab_size: 512 in the checkpoint, 640 now' -- model.vocab_size=640
differs 'model.num_nextn_predict_layers: 1 in the checkpoint, 0 now' \
    -- model.num_nextn_predict_layers=0
head -c 20000 "$tmp/text" >"$tmp/part"
"$DSV3_BUILD/dsv3-tokenize" --separator ===== --out "$tmp/other.tok.zst" "$tmp/part" >/dev/null
differs 'data.train: fingerprint .* other data' -- data.train="$tmp/other.tok.zst" data.heldout=[]

cp -r "$tmp/run" "$tmp/longer"
first longer 2 6 "$@" optimizer.lr=2e-3 train.global_batch=4 train.log_every=1
resumed_at longer 4
for line in 'optimizer.lr: 0.001 in the checkpoint, 0.002 now' \
    'train.global_batch: 8 in the checkpoint, 4 now'; do
    grep -q "^$line" "$tmp/longer.out" || fail "'$line' is not in: $(cat "$tmp/longer.out")"
done
grep '"step":5,' "$tmp/longer/metrics.jsonl" | grep -q "\"tokens\":$((4 * 8 * 32 + 4 * 32))," ||
    fail 'other tokens'

# the weights alone: other data, another width of experts, no MTP module
set -- "$@" run.init_from="$tmp/run"
new() {
    train new 2 train.steps=2 $open_end checkpoint.on_exit=true topology.ep=2 \
        run.init_from="$tmp/run" "$@"
}
not_new() { # WORDS [key=value ...]: it is no start with these weights, and nothing is written
    n_words=$1
    shift
    code=0
    new "$@" || code=$?
    [ $code != 0 ] && [ ! -e "$tmp/new" ] || fail "$*: $code, $(ls "$tmp")"
    grep -q -e "$n_words" "$tmp/new.err" || fail "$*: '$n_words' is not in $(cat "$tmp/new.err")"
}
not_new 'run.init_from: .*/none/manifest.json: No such file' run.init_from="$tmp/none"
not_new 'has 4 layers and MTP depth 1, this model 5 and 1:' model.num_hidden_layers=5
not_new 'has 4 layers and MTP depth 1, this model 5 and 0:' model.num_hidden_layers=5 \
    model.num_nextn_predict_layers=0 run.init_from_partial=true
not_new 'has 48 of the 129 tensors of this model; run.init_from_partial: true loads these' \
    model.num_nextn_predict_layers=0 model.moe_intermediate_size=16
[ "$(grep -c '^init    not loaded: model/' "$tmp/new.err")" = 8 ] &&
    grep -q '^init    ... and 73 more' "$tmp/new.err" || fail "$(cat "$tmp/new.err")"
new data.train="$tmp/heldout.tok.zst" model.num_nextn_predict_layers=0 \
    model.moe_intermediate_size=16 model.rope_theta=20000 run.init_from_partial=true ||
    fail "$(cat "$tmp/new.out")"
for line in 'model.rope_theta: 10000 in the checkpoint, 20000 now' \
    '^init    48 of the 129 tensors of this model from .*/run/checkpoints/step-00000004' \
    'random: model/model.layers.1.mlp.experts.0.gate_proj.weight \[16, 64\], \[32, 64\] in' \
    'not used: model/model.layers.4.'; do
    grep -q "$line" "$tmp/new.out" || fail "'$line' is not in: $(cat "$tmp/new.out")"
done
[ "$(grep -c '"loss":' "$tmp/new/metrics.jsonl")" = 2 ] || fail 'not a new run'

# a run that resumes needs them no more, and says so
first same 2 1 "$@" run.init_from="$tmp/run/checkpoints" optimizer.lr=1e-30 \
    optimizer.min_lr=0 optimizer.warmup_steps=0 debug.param_hash=true optimizer.weight_decay=0
begun=$(hash_of same)
first same 2 1 "$@" run.init_from="$tmp/run/checkpoints"
grep -q '^init    run.init_from .* is ignored: the run resumes from step 1$' "$tmp/same.out" ||
    fail "silent: $(cat "$tmp/same.out")"
first same 2 1 "$@" run.init_from="$tmp/none"
grep -q '^warning .*run.init_from: .*none.*No such file.*; ignored, as the run resumes from' \
    "$tmp/same.err" || fail "silent: $(cat "$tmp/same.err")"
cp -r "$tmp/run" "$tmp/done"
first done 2 4 "$@" debug.param_hash=true
[ "$begun" = "$(hash_of done)" ] || fail 'other weights than those of the checkpoint'
