# Weights of Hugging Face's files arrive bit for bit: F32 as transformers writes it, BF16, F16 and
# FP8 with scales of ragged blocks as recorded with torch; and so do the settings of the model.
#TEST timeout=60
. tests/lib_test.sh

# has NAME LINE: the model of that import has it.
has() {
    grep -q "^ *$2\$" "$tmp/$1/model.yaml" || fail "$1: model.yaml has no '$2'"
}

for golden in v3 v3_eps v2 moonlight v2_lite fp8_mtp; do
    from=tests/golden/hf/$golden
    "$DSV3_BUILD/dsv3-ckpt" import "$from" "$tmp/$golden" >"$tmp/$golden.out" ||
        fail "$golden: exit code $?"
    "$DSV3_BUILD/dsv3-ckpt" verify "$tmp/$golden/latest" >"$tmp/out" || fail "$golden: not good"
    sed -n 's/^  {"name": "\([^"]*\)".*, "\([0-9a-f]\{16\}\)"\]\].*/\2 \1/p' \
        "$tmp/$golden/latest/manifest.json" | LC_ALL=C sort -k 2 >"$tmp/found"
    cmp "$from/expected.txt" "$tmp/found" || fail "$golden: other values"
    "$dsv3" check "$tmp/$golden/model.yaml" >"$tmp/out" || fail "$golden: not a model file"
done

has v3 'scoring_func: sigmoid'
has v3 'topk_method: noaux_tc'
has v3 'num_nextn_predict_layers: 0'
grep -q 'config.json says 1 MTP modules, the files hold none' "$tmp/v3.out" || fail 'v3: no note'
has v3_eps 'rms_norm_eps: 1e-5'
has v3_eps 'latent_norm_eps: 1e-6'
has v2 'scoring_func: softmax'
has v2 'topk_method: greedy'
has v2 'norm_topk_prob: false'
has moonlight 'q_lora_rank: null'
has moonlight 'rope_theta: 50000'
has moonlight 'rms_norm_eps: 1e-5'
has moonlight 'routed_scaling_factor: 2.446'
grep -q 'no meaning here: aux_loss_alpha, seq_aux$' "$tmp/moonlight.out" || fail 'no note on keys'
has v2_lite 'type: yarn'
has v2_lite 'factor: 40'
has v2_lite 'mscale: 0.707'
has v2_lite 'mscale_all_dim: 0.707'
has v2_lite 'max_position_embeddings: 163840'
has fp8_mtp 'num_nextn_predict_layers: 1'

# Experts under their global numbers, each another; a bias for each layer of experts.
for e in 0 1 2 3 4 5 6 7; do
    grep "experts.$e.up_proj" "$tmp/v3/latest/manifest.json"
done | sed 's/.*, "//' | sort -u | grep -c . >"$tmp/n"
[ "$(cat "$tmp/n")" = 8 ] || fail "$(cat "$tmp/n") different experts of 8"
[ "$(grep -c e_score_correction_bias "$tmp/fp8_mtp/latest/manifest.json")" = 2 ] ||
    fail 'not a bias of the layer and one of the MTP module'

# --model in place of config.json: what they disagree on is said; MTP modules may be left out.
sed 's/num_nextn_predict_layers: 1/num_nextn_predict_layers: 0/' "$tmp/fp8_mtp/model.yaml" \
    >"$tmp/main.yaml"
"$DSV3_BUILD/dsv3-ckpt" import tests/golden/hf/fp8_mtp "$tmp/main" --model "$tmp/main.yaml" \
    >"$tmp/out" || fail 'import without MTP'
grep -q 'note: --model: num_nextn_predict_layers: 0; config.json: num_nextn_predict_layers: 1$' \
    "$tmp/out" || fail "the difference is not told: $(cat "$tmp/out")"
grep -q 'tensors left out, of MTP modules' "$tmp/out" || fail 'what is left out is not told'
! grep -q 'layers.2' "$tmp/main/latest/manifest.json" || fail 'the MTP module was taken'

# A copy of the embedding or the head in an MTP module must be one.
cp -r tests/golden/hf/fp8_mtp "$tmp/other"
chmod -R u+w "$tmp/other"
tests/safetensors_edit change "$tmp/other/model-00003-of-00003.safetensors" '
    my ($first) = $h->{"model.layers.2.shared_head.head.weight"}{data_offsets}[0];
    substr($data, $first + 100, 1) ^= "\x40"'
code=0
"$DSV3_BUILD/dsv3-ckpt" import "$tmp/other" "$tmp/out.other" >/dev/null 2>"$tmp/err" || code=$?
[ $code = 65 ] || fail "another head in the MTP module: exit code $code"
grep -q 'model.layers.2.shared_head.head.weight: element 50 .* as in lm_head.weight' "$tmp/err" ||
    fail "$(cat "$tmp/err")"
[ ! -e "$tmp/out.other" ] || fail 'something was written'

# A model saved with no shared experts has empty tensors for them, which are skipped.
cp -r tests/golden/hf/v3 "$tmp/none"
chmod -R u+w "$tmp/none"
sed -i 's/"n_shared_experts": 1/"n_shared_experts": 0/' "$tmp/none/config.json"
for file in "$tmp/none"/*.safetensors; do
    tests/safetensors_edit change "$file" '
        for (grep /shared_experts/, sort keys %$h) {
            my ($at, $end) = @{$h->{$_}{data_offsets}};
            substr($data, $at, $end - $at) = "";
            for my $t (grep ref $_->{shape}, values %$h) {
                $_ >= $end and $_ -= $end - $at for @{$t->{data_offsets}};
            }
            $h->{$_}{shape} = /down_proj/ ? [16, 0] : [0, 16];
            $h->{$_}{data_offsets} = [$at, $at];
        }'
done
"$DSV3_BUILD/dsv3-ckpt" import "$tmp/none" "$tmp/out.none" >/dev/null || fail 'empty tensors'

# An import that is killed at any rename leaves nothing that keeps it from being done again, and no
# checkpoint without its model.yaml.
for at in 1 2 3; do
    code=0
    FAULTY_PATH="$tmp/killed" FAULTY_CALL=rename FAULTY_HOW=kill FAULTY_AT=$at FAULTY_RANKS=0 \
        FAULTY_SYNC_MS=0 OMPI_COMM_WORLD_RANK=0 LD_PRELOAD="$DSV3_BUILD/tests/faulty_io.so" \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        "$DSV3_BUILD/dsv3-ckpt" import tests/golden/hf/v3 "$tmp/killed" >/dev/null 2>&1 || code=$?
    [ $code != 0 ] || break
    [ ! -e "$tmp/killed/step-00000000" ] || [ -e "$tmp/killed/model.yaml" ] ||
        fail "killed at rename $at: a checkpoint without model.yaml"
    if [ ! -e "$tmp/killed/step-00000000" ]; then
        "$DSV3_BUILD/dsv3-ckpt" import tests/golden/hf/v3 "$tmp/killed" >/dev/null ||
            fail "killed at rename $at: cannot be imported again"
    fi
    rm -r "$tmp/killed"
done
[ $at = 3 ] || fail "only $at renames were killed"
