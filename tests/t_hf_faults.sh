# Files of weights that are broken, or are not those of the model: one line that names file and
# place (every tensor that is missing or too much has its own), the exit code, nothing written.
#TEST timeout=120
. tests/lib_test.sh
golden=tests/golden/hf/v3
one=model-00001-of-00002.safetensors two=model-00002-of-00002.safetensors

# refuses CODE LINES WORDS: what is in $tmp/in.
refuses() {
    code=0
    "$DSV3_BUILD/dsv3-ckpt" import "$tmp/in" "$tmp/out" >"$tmp/said" 2>"$tmp/err" || code=$?
    [ $code = "$1" ] || fail "'$3': exit code $code, expected $1: $(cat "$tmp/err")"
    [ "$(wc -l <"$tmp/err")" = "$2" ] || fail "'$3': not $2 lines: $(cat "$tmp/err")"
    grep -q -e "$3" "$tmp/err" || fail "'$3' is not in: $(cat "$tmp/err")"
    [ ! -e "$tmp/out" ] || fail "'$3': something was written"
    rm -rf "$tmp/in"
}
fresh() {
    cp -r "$golden" "$tmp/in"
    chmod -R u+w "$tmp/in"
}
# header CODE PERL WORDS: the header of the first file changed so.
header() {
    fresh
    tests/safetensors_edit change "$tmp/in/$one" "$2"
    refuses "$1" 1 "$3"
}
w='model.embed_tokens.weight'

header 65 '$n = 1 << 40' "$one: byte 0: header of 1099511627776 bytes"
header 65 '$n = 0' "$one: byte 0: header of 0 bytes"
header 65 '$text = "{\"a\": "' "$one: byte .*: header"
header 65 '$text = "[1]"' "$one: byte 8: header: expected a JSON object"
header 65 '$text = JSON::PP->new->encode($h); $text =~ s/^./{"'$w'": 1, /' "$one: .*duplicate"
header 65 '$h->{"'$w'"}{dtype} = "F4"' "$one: $w: dtype: found F4, expected one of F32"
header 65 '$h->{"'$w'"}{shape} = [48, -16]' "$one: $w: shape: found a size of -16 in dimension 1"
header 65 '$h->{"'$w'"}{shape} = [1 << 40, 1 << 40]' "$one: $w: shape"
header 65 '$h->{"'$w'"}{shape} = "48x16"' "$one: $w: shape: found no list"
header 65 '$h->{"'$w'"}{shape} = [48, 17]' "$one: $w: found 3072 bytes, expected 3264"
header 65 '$h->{"'$w'"}{data_offsets}[1] = 1 << 50' "$one: $w: data_offsets: found .*inside the"
header 65 '$h->{"'$w'"}{data_offsets} = [0]' "$one: $w: data_offsets: expected a list of two"
header 65 'my $o = $h->{"'$w'"}{data_offsets}; $_ -= 4 for @$o' "$one: .*\(data_offsets\|overlap\)"
header 65 '$data .= "x"' "$one: the last tensor ends at byte .*, expected the file's end"
header 65 'chop $data' "$one: .*data_offsets: found"
header 65 '$data = ("x" x 8) . $data; for (values %$h) { next unless ref $_->{shape};
    $_ += 8 for @{$_->{data_offsets}} }' "$one: byte .*: they leave a hole"
header 65 'substr($data, 40, 4) = pack "f<", 9**9**9' "$one: .*: element .* is inf, expected"

# The index and the files.
fresh
sed -i "s/\"$w\": \"$one\"/\"$w\": \"$two\"/" "$tmp/in/model.safetensors.index.json"
refuses 65 1 "$one: holds $w, expected, as .*index.json says, $two"
fresh
sed -i "s/\"weight_map\": {/&\"model.more\": \"$two\",/" "$tmp/in/model.safetensors.index.json"
refuses 65 1 "index.json: weight_map: model.more: not in $two"
fresh
sed -i "s|\"$w\": \"$one\"|\"$w\": \"../$one\"|" "$tmp/in/model.safetensors.index.json"
refuses 65 1 "weight_map: $w: found ../$one, expected the name of a file"
fresh
echo '{"weight_map": {}}' >"$tmp/in/model.safetensors.index.json"
refuses 65 1 'index.json: weight_map: found no tensors'
fresh
rm "$tmp/in/$two"
refuses 66 1 "$two: No such file"
fresh
rm "$tmp/in/model.safetensors.index.json"
refuses 66 1 'found none of model.safetensors and model.safetensors.index.json'
fresh
: >"$tmp/in/$two"
refuses 65 1 "$two: found 0 bytes, expected a header"

# Tensors that the model does not have, or has in another shape; all of them are named.
fresh
sed -i 's/"num_hidden_layers": 2/"num_hidden_layers": 1/; s/\(nextn.*\) 1/\1 0/' \
    "$tmp/in/config.json"
refuses 65 38 'layers.1.mlp.experts.7.up_proj.weight is not in the model'
fresh
sed -i 's/"num_hidden_layers": 2/"num_hidden_layers": 3/' "$tmp/in/config.json"
refuses 65 38 'in: model.layers.2.mlp.experts.7.down_proj.weight is missing'
fresh
sed -i 's/"kv_lora_rank": 10/"kv_lora_rank": 9/' "$tmp/in/config.json"
refuses 65 6 'kv_a_proj_with_mqa.weight: found shape \[14, 16\], expected \[13, 16\]'

# A model of more tensors than anybody can read errors of: the first ones and their number.
fresh
sed -i 's/\(hidden_layers.*\) 2/\1 300/; s/\(routed_experts.*\) 8/\1 512/' "$tmp/in/config.json"
refuses 65 51 '^dsv3-ckpt: ... and [0-9]* more$'

# Settings that would be another model here.
config() {
    fresh
    sed -i "$1" "$tmp/in/config.json"
    refuses 78 1 "$2"
}
config 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' 'embeddings: found true'
config 's/"hidden_act": "silu"/"hidden_act": "gelu"/' 'hidden_act: found .*, expected silu'
config 's/"rope_interleave": true/"rope_interleave": false/' 'rope_interleave: found false'
config 's/"rope_type": "default"/"rope_type": "linear"/' 'rope_type: found "linear"'
config 's/DeepseekV3ForCausalLM/DeepseekV2ForCausalLM/' 'architectures: .*of model_type'
config 's/DeepseekV3ForCausalLM/LlamaForCausalLM/; s/deepseek_v3/llama/' 'model_type: found llama'
config 's/"vocab_size": 48/"vocab_size": "48"/' 'vocab_size: found'
config 's/"use_cache": true/"quantization_config": {"quant_method": "awq"}/' 'expected fp8'
