# What is exported is what was imported, each tensor's bytes as they were: in F32 and in BF16, over
# several files, with an MTP module; and a directory that is there is whole.
#TEST timeout=60
. tests/lib_test.sh
ckpt=$DSV3_BUILD/dsv3-ckpt

# trip GOLDEN [options]: import and export to $tmp/GOLDEN.hf
trip() {
    golden=$1
    shift
    [ -e "$tmp/$golden" ] || "$ckpt" import "tests/golden/hf/$golden" "$tmp/$golden" >/dev/null
    rm -rf "$tmp/$golden.hf"
    "$ckpt" export "$tmp/$golden/latest" "$tmp/$golden.hf" "$@" >"$tmp/out" ||
        fail "export of $golden: exit code $?"
    tests/safetensors_edit list "tests/golden/hf/$golden"/*.safetensors | grep -v inv_freq \
        >"$tmp/want" || :
    tests/safetensors_edit list "$tmp/$golden.hf"/*.safetensors >"$tmp/found"
}
# Types and bytes of everything but the selection biases.
same_bytes() {
    grep -v e_score_correction_bias "$tmp/want" >"$tmp/want.matrices"
    grep -v e_score_correction_bias "$tmp/found" >"$tmp/found.matrices"
    cmp "$tmp/want.matrices" "$tmp/found.matrices" || fail "$golden: not the same bytes"
}

for golden in v3 v2; do
    trip $golden --dtype f32 --shard-bytes 12000
    cmp "$tmp/want" "$tmp/found" || fail "$golden: not the same bytes"
    [ "$(ls "$tmp/$golden.hf"/model-*.safetensors | wc -l)" -ge 3 ] || fail "$golden: one file"
done
ls "$tmp/v3.hf" | tr '\n' ' ' >"$tmp/names"
grep -q 'config.json model-00001-of-00003.safetensors .*model.safetensors.index.json $' \
    "$tmp/names" || fail "names: $(cat "$tmp/names")"

# BF16 is the default; a bias that was BF16 is F32 with the same values.
trip moonlight
same_bytes
grep -q 'gate.e_score_correction_bias F32 \[8\]' "$tmp/found" || fail 'the bias is not F32'

# FP8 comes out as F32 exactly, as BF16 rounded; the MTP module has its copies again.
trip fp8_mtp --dtype f32
"$ckpt" import "$tmp/fp8_mtp.hf" "$tmp/again" >/dev/null
"$ckpt" diff "$tmp/fp8_mtp/latest" "$tmp/again/latest" >"$tmp/out" || fail "$(cat "$tmp/out")"
[ "$(cat "$tmp/out")" = 'no difference' ] || fail "$(cat "$tmp/out")"
trip fp8_mtp
for pair in model.embed_tokens.weight:model.layers.2.embed_tokens.weight \
    lm_head.weight:model.layers.2.shared_head.head.weight; do
    a=$(sed -n "s/^${pair%:*} //p" "$tmp/found") b=$(sed -n "s/^${pair#*:} //p" "$tmp/found")
    [ -n "$a" ] && [ "$a" = "$b" ] || fail "$pair: '$a', '$b'"
done

# The settings come back, too.
for golden in v3 v2_lite moonlight; do
    trip $golden --dtype f32
    "$ckpt" import "$tmp/$golden.hf" "$tmp/$golden.again" >/dev/null
    cmp "$tmp/$golden/model.yaml" "$tmp/$golden.again/model.yaml" || fail "$golden: other settings"
done

# So do the ids that begin, end and pad a text; of a list the first, with a note.
cp -r tests/golden/hf/v3 "$tmp/ids"
chmod -R u+w "$tmp/ids"
sed -i 's/"bos_token_id": .*,/"bos_token_id": 3,/; s/"eos_token_id": .*,/"eos_token_id": [5, 6],/
    s/"pad_token_id": .*,/"pad_token_id": 7,/' "$tmp/ids/config.json"
"$ckpt" import "$tmp/ids" "$tmp/ids.in" >"$tmp/out"
grep -q 'note: eos_token_id is a list of 2: only its first is kept' "$tmp/out" ||
    fail "$(cat "$tmp/out")"
"$ckpt" export "$tmp/ids.in" "$tmp/ids.hf" >/dev/null
[ "$(sed -n 's/.*"\(...\)_token_id": \(.*\),/\1 \2/p' "$tmp/ids.hf/config.json" | tr '\n' ' ')" = \
    'bos 3 eos 5 pad 7 ' ] || fail "other ids: $(grep token_id "$tmp/ids.hf/config.json")"

# Only into what is not there; what cannot be written leaves nothing that looks whole.
code=0
"$ckpt" export "$tmp/v3/latest" "$tmp/v3.hf" 2>"$tmp/err" || code=$?
[ $code = 78 ] || fail "over another directory: exit code $code"
mkdir "$tmp/full"
(ulimit -f 16 && trap '' XFSZ && "$ckpt" export "$tmp/fp8_mtp/latest" "$tmp/full/x") 2>"$tmp/err" &&
    fail 'files beyond the limit'
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
[ -z "$(ls "$tmp/full")" ] || fail "left behind: $(ls "$tmp/full")"

# A model that no class of Hugging Face computes is refused.
sed 's/topk_method: greedy/topk_method: noaux_tc/' "$tmp/v2/model.yaml" >"$tmp/mixed.yaml"
code=0
"$ckpt" import tests/golden/hf/v2 "$tmp/mixed" --model "$tmp/mixed.yaml" >/dev/null 2>"$tmp/err" ||
    code=$?
[ $code = 65 ] || fail "biases that are missing: exit code $code"
grep -q 'model.layers.1.mlp.gate.e_score_correction_bias is missing' "$tmp/err" ||
    fail "$(cat "$tmp/err")"
