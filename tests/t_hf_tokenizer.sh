# The tokenizer of an export gives text the ids of the shards, and config.json names the id that
# ends documents: of bytes, of a tokenizer.json, of a part of one. Where python (PEER, python3) has
# transformers, its AutoTokenizer is asked, too.
#TEST timeout=120
. tests/lib_test.sh
ckpt=$DSV3_BUILD/dsv3-ckpt tokenize="$DSV3_BUILD/dsv3-tokenize --any-bytes"
golden=tests/golden/tokenizer
text=$golden/mixed.txt
bpe=$golden/deepseek.json

# train NAME SHARD VOCAB [section.key=value ...]: one step in $tmp/NAME.
train() {
    name=$1 shard=$2 vocab=$3
    shift 3
    "$dsv3" train tests/tiny.yaml "run.dir=$tmp/$name" "data.train=$shard" \
        "model.vocab_size=$vocab" train.steps=1 train.global_batch=1 model.num_hidden_layers=2 \
        optimizer.warmup_steps=0 checkpoint.on_exit=true "$@" >"$tmp/$name.out" 2>&1 ||
        fail "$name: $(cat "$tmp/$name.out")"
}
# ids SHARD: one a line, without those that end documents.
ids() {
    zstd -dcq "$1" | od -An -v -tu2 -w2 | tr -d ' ' | grep -vx "$2" || :
}
# trip NAME VOCAB EOD "OPTIONS of dsv3-tokenize" "OPTIONS of export": a run of one step and its
# export $tmp/NAME.hf.
trip() {
    name=$1 eod=$3
    $tokenize --out "$tmp/$name.tok.zst" $4 "$text" >/dev/null || fail "$name: tokenize"
    train "$name" "$tmp/$name.tok.zst" "$2"
    "$ckpt" export "$tmp/$name" "$tmp/$name.hf" $5 >"$tmp/$name.said" || fail "$name: export"
    grep -q "\"eos_token_id\": $eod,$" "$tmp/$name.hf/config.json" ||
        fail "$name: $(grep eos "$tmp/$name.hf/config.json"), expected $eod"
    # The exported file reads as the same tokenizer.
    $tokenize --force --out "$tmp/again.tok.zst" --eod none \
        --tokenizer "$tmp/$name.hf/tokenizer.json" "$text" >/dev/null ||
        fail "$name: the exported tokenizer.json is refused"
    ids "$tmp/$name.tok.zst" "$eod" >"$tmp/$name.ids"
    ids "$tmp/again.tok.zst" "$eod" | cmp - "$tmp/$name.ids" || fail "$name: other ids"
}

trip bytes 257 256 '' ''
trip whole 904 901 "--tokenizer $bpe --eod <|end" "--tokenizer $bpe"
grep -q '"eos_token": "<|end"' "$tmp/whole.hf/tokenizer_config.json" || fail 'whole: eos_token'
cmp "$bpe" "$tmp/whole.hf/tokenizer.json" || fail 'whole: another file'
trip part 400 1 "--tokenizer $bpe --max-vocab 400 --eod <|end|>" "--tokenizer $bpe --max-vocab 400"
! grep -q '<|fim|>' "$tmp/part.hf/tokenizer.json" || fail 'part: a token that was cut off'
tr ' ' '\n' <"$golden/deepseek-400.mixed.ids.txt" | grep -vx 1 | cmp - "$tmp/part.ids" ||
    fail 'part: not the recorded ids'

# Another part than the data were made with is refused, and so is a tokenizer beside bytes.
for wrong in "part --tokenizer $bpe --max-vocab 399" "bytes --tokenizer $bpe --max-vocab 257" \
    "part --tokenizer $bpe"; do
    code=0
    "$ckpt" export "$tmp/${wrong%% *}" "$tmp/wrong.hf" ${wrong#* } 2>"$tmp/err" || code=$?
    [ $code = 78 ] || [ $code = 65 ] || fail "$wrong: exit code $code"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$wrong: $(cat "$tmp/err")"
done

# A model that says what ends a text: exported as it says, and the difference is reported twice.
train other "$tmp/whole.tok.zst" 904 model.eos_token_id=7 model.pad_token_id=0
grep -q 'model.eos_token_id is 7, but data.train has 901' "$tmp/other.out" ||
    fail "$(cat "$tmp/other.out")"
"$ckpt" export "$tmp/other" "$tmp/other.hf" >"$tmp/out"
grep -q 'note: eos_token_id is model.eos_token_id 7; .* end with 901' "$tmp/out" ||
    fail "$(cat "$tmp/out")"
grep -q '"pad_token_id": 0,' "$tmp/other.hf/config.json" || fail 'pad_token_id'

python=${PEER:-python3}
"$python" -c 'import transformers' 2>/dev/null || {
    echo "$python has no transformers: AutoTokenizer was not asked"
    exit 0
}
HF_HUB_OFFLINE=1 "$python" - "$text" "$tmp"/bytes "$tmp"/whole "$tmp"/part <<'PY' || fail 'encode'
import sys
import transformers
text = open(sys.argv[1], newline="").read()
for name in sys.argv[2:]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(name + ".hf")
    config = transformers.AutoConfig.from_pretrained(name + ".hf")
    want = [int(x) for x in open(name + ".ids")]
    found = tokenizer.encode(text, add_special_tokens=False)
    without_end = [x for x in found if x != tokenizer.eos_token_id]
    assert without_end == want, (name, without_end[:20], want[:20])
    assert tokenizer.eos_token_id == config.eos_token_id, name
    assert name.endswith("bytes") is False or tokenizer.decode(found) == text, name
    print(name, len(found), "ids,", tokenizer.eos_token, tokenizer.eos_token_id)
PY
