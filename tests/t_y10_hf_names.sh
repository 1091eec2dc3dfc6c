# The tensors of a released model are those of the shipped configuration: DeepSeek-V3's 91,991, of
# which 45,808 are scales of FP8 matrices and 2 the MTP module's copies of embedding and head.
#TEST timeout=60
. tests/lib_test.sh

mkdir "$tmp/empty"
printf '\002\000\000\000\000\000\000\000{}' >"$tmp/empty/model.safetensors"
code=0
"$DSV3_BUILD/dsv3-ckpt" import "$tmp/empty" "$tmp/out" \
    --model configs/models/deepseek-v3-671b.yaml 2>"$tmp/err" || code=$?
[ $code = 65 ] || fail "exit code $code: $(head -n 3 "$tmp/err")"
sed -n 's/.*: \(.*\) is missing$/\1/p' "$tmp/err" | LC_ALL=C sort -u >"$tmp/names"
[ "$(wc -l <"$tmp/names")" = $((91991 - 45808 - 2)) ] || fail "$(wc -l <"$tmp/names") tensors"

# FP8 in the release: the projections of attention and of all MLPs.
n=$(grep -c '_proj.weight$\|kv_a_proj_with_mqa.weight$' "$tmp/names")
[ "$n" = $((45808 + 1)) ] || fail "$n projections, eh_proj among them"
for name in model.layers.60.mlp.experts.255.down_proj.weight model.layers.61.eh_proj.weight \
    model.layers.61.mlp.gate.e_score_correction_bias model.layers.61.shared_head.norm.weight; do
    grep -qx "$name" "$tmp/names" || fail "no $name"
done
