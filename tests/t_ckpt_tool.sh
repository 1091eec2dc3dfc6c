# dsv3-ckpt looks at checkpoints: what it lists, shows and compares, that a flipped bit is found and
# named, and what pruning removes.
#TEST timeout=60
. tests/lib_test.sh
ckpt=$DSV3_BUILD/dsv3-ckpt root=$tmp/root

# says CODE WORDS COMMAND ...: what it prints is in $tmp/said.
says() {
    want=$1 words=$2 code=0
    shift 2
    "$ckpt" "$@" >"$tmp/said" 2>&1 || code=$?
    [ $code = "$want" ] || fail "$*: exit code $code, expected $want: $(cat "$tmp/said")"
    grep -q -e "$words" "$tmp/said" || fail "$*: '$words' is not in: $(cat "$tmp/said")"
}
# flip FILE BYTE
flip() {
    perl -e 'open my $f, "+<:raw", $ARGV[0] or die; seek $f, $ARGV[1], 0; read $f, my $c, 1;
        seek $f, $ARGV[1], 0; print $f chr(ord($c) ^ 4)' "$1" "$2"
}

"$ckpt" import tests/golden/hf/v3 "$root" >/dev/null
says 0 '^        0                   0          -          -        0.1 MB  yes$' list "$root"
says 0 'good: 53 tensors in 53 boxes and 1 file,' verify "$root/latest"
says 0 'step-00000000: good' verify "$root"
says 0 'no difference' diff "$root/latest" "$root/step-00000000"
says 0 'no difference' diff "$root" "$root/latest"
says 0 '^2 of 53 tensors, 136 elements$' show "$root/latest" mlp.gate.
says 0 '^8 of 53 tensors, 1,024 elements$' show "$root/latest" '*experts.*.up_proj.weight'
says 66 'no checkpoint' list "$tmp/nothing"
says 66 'manifest.json: No such file' show "$tmp/nothing"
mkdir "$tmp/pipe"
mkfifo "$tmp/pipe/manifest.json"
says 66 'manifest.json: not a regular file' show "$tmp/pipe"
says 64 'no command' nothing-of-the-kind
says 64 'number of paths' show
says 64 'does not belong to show' show "$root/latest" --dry-run

# The norm, from the file of which the checkpoint was made.
perl -e 'use strict; open my $f, "<:raw", $ARGV[0] or die; my $all = do { local $/; <$f> };
    my ($a, $b) = $all =~ /"lm_head.weight":\{[^}]*"data_offsets":\[(\d+),(\d+)\]/ or die;
    my $data = 8 + unpack "Q<", $all;
    my $sum = 0; $sum += $_ * $_ for unpack "f<*", substr $all, $data + $a, $b - $a;
    printf "|x| %.9g\n", sqrt $sum' tests/golden/hf/v3/model-00001-of-00002.safetensors >"$tmp/norm"
says 0 "$(cat "$tmp/norm")" show "$root/latest" lm_head

# One tensor and one setting that differ.
cp -r tests/golden/hf/v3 "$tmp/hf"
chmod -R u+w "$tmp/hf"
sed -i 's/"max_position_embeddings": 64/"max_position_embeddings": 32/' "$tmp/hf/config.json"
tests/safetensors_edit change "$tmp/hf/model-00001-of-00002.safetensors" \
    'substr($data, $h->{"lm_head.weight"}{data_offsets}[0] + 4 * 17, 4) = pack "f<", 100'
"$ckpt" import "$tmp/hf" "$tmp/other" >/dev/null
says 1 'lm_head.weight: 1 of 768 elements, most in element 17: .*, 100 (' diff "$root/latest" \
    "$tmp/other/latest"
grep -q '^config  model.max_position_embeddings: 64, 32$' "$tmp/said" || fail "$(cat "$tmp/said")"
[ "$(wc -l <"$tmp/said")" = 2 ] || fail "more differences: $(cat "$tmp/said")"
"$ckpt" import tests/golden/hf/v2 "$tmp/v2" >/dev/null
says 1 'q_a_proj.weight: only in A' diff "$root/latest" "$tmp/v2/latest"
grep -q 'tensor  model/model.layers.0.self_attn.q_proj.weight: only in B' "$tmp/said" ||
    fail "$(cat "$tmp/said")"

# F32 weights that BF16 has no number for.
tests/safetensors_edit change "$tmp/hf/model-00001-of-00002.safetensors" \
    'substr($data, $h->{"lm_head.weight"}{data_offsets}[0] + 4 * 17, 4) = pack "f<", 3.4e38'
"$ckpt" import "$tmp/hf" "$tmp/huge" >/dev/null
says 65 'lm_head.weight: element 17 is 3.4e+38, expected a finite number of BF16' export \
    "$tmp/huge" "$tmp/bf16"
[ ! -e "$tmp/bf16" ] || fail 'the refused export is there'
says 0 . export --dtype f32 "$tmp/huge" "$tmp/f32"

# Damage: named by file, tensor and box, in the newest of several; the others are good.
for step in 1 2 3 4 5; do cp -r "$root/step-00000000" "$root/step-0000000$step"; done
at=$(sed -n 's/.*"model\/model.norm.weight".*"offset": \([0-9]*\),.*/\1/p' \
    "$root/latest/manifest.json")
flip "$root/step-00000005/tensors-00000.h5" $((at + 5))
says 65 'step-00000005/tensors-00000.h5: model/model.norm.weight, box of 16 elements' verify "$root"
[ "$(grep -c ': good: ' "$tmp/said")" = 5 ] || fail "$(cat "$tmp/said")"
says 65 'nothing removed, since .*step-00000005.*model.norm.weight' prune "$root" --keep-last 1
[ "$(ls -d "$root"/step-* | wc -l)" = 6 ] || fail 'the good ones were removed'
flip "$root/step-00000005/tensors-00000.h5" 3
says 65 'tensors-00000.h5: the bytes around its tensors' verify "$root/step-00000005"
[ "$(grep -c '^dsv3-ckpt: ' "$tmp/said")" = 2 ] || fail "not two faults: $(cat "$tmp/said")"
flip "$root/step-00000004/manifest.json" 300
says 0 ' 4 .* no: .*step-00000004/manifest.json: checksum' list "$root"

# Pruning: nothing while one that stays is broken; then the newest two and the even ones stay.
says 65 'nothing removed, since one to keep is not whole' prune "$root" --keep-last 2
[ "$(ls -d "$root"/step-* | wc -l)" = 6 ] || fail 'something was removed'
rm -r "$root/step-00000004" "$root/step-00000005"
says 0 'step-00000001: would be removed' prune "$root" --keep-last 1 --keep-every 2 --dry-run
[ "$(ls -d "$root"/step-* | wc -l)" = 4 ] || fail 'a dry run removed something'
says 0 'step-00000001: removed' prune "$root" --keep-last 1 --keep-every 2
left=$(cd "$root" && echo step-*)
[ "$left" = 'step-00000000 step-00000002 step-00000003' ] || fail "left: $left"
