# A global batch that micro-batches and ranks do not divide is refused with the equation; one that
#TEST timeout=60 cores=2
# they do is printed with it, by check and by the run, and is what every step takes.
. tests/lib_train.sh
make_run

# refused WORDS RANKS OVERRIDE...
refused() {
    words=$1 np=$2
    shift 2
    code=0
    "$dsv3" check "$tmp/run.yaml" "$@" --ranks "$np" >/dev/null 2>"$tmp/said" || code=$?
    [ $code = 78 ] || fail "check $*: exit code $code"
    grep -qF "$words" "$tmp/said" || fail "check $*: '$words' is not in: $(cat "$tmp/said")"
}
equation='found 10, expected a multiple of 16 = train.micro_batch 4 x dp 4 (dp = 4 ranks / tp 1): '
equation="${equation}10 = 4 x 4 x 0.625"
refused "$equation" 4 train.global_batch=10 train.micro_batch=4
code=0
train refused 4 train.global_batch=10 train.micro_batch=4 || code=$?
[ $code = 78 ] || fail "train: exit code $code"
grep -qF "$equation" "$tmp/refused.out" || fail "train: $(cat "$tmp/refused.out")"
[ ! -e "$tmp/refused" ] || fail 'train has begun'
refused '4 = train.micro_batch 1 x dp 4 (dp = 4 ranks / tp 1): 2 = 1 x 4 x 0.5' 4 \
    train.global_batch=2
refused 'found 2, expected a multiple of train.micro_batch 4: 2 = 4 x 0.5' 1 train.global_batch=2 \
    train.micro_batch=4
refused '8 = train.micro_batch 4 x dp 2 (dp = 4 ranks / tp 2): 12 = 4 x 2 x 1.5' 4 \
    train.global_batch=12 train.micro_batch=4 topology.tp=2
# A batch counts sequences; there is no second key that counts it in tokens, nor half a sequence.
refused 'train.global_batch_tokens: unknown key' 1 train.global_batch_tokens=100
refused 'train.global_batch: found 3.125' 1 train.global_batch=3.125

batch='train.global_batch=16 train.micro_batch=2 topology.tp=2 data.heldout=[] train.steps=3'
"$dsv3" check "$tmp/run.yaml" $batch --ranks 4 >"$tmp/said"
grep -qF 'global_batch 16 = micro_batch 2 x accumulation 4 x dp 2; 512 tokens a step' "$tmp/said" ||
    fail "check prints: $(cat "$tmp/said")"
must_train right 4 $batch debug.dump_step=2
grep -qF '3 of 16 sequences = micro-batch 2 x 4 accumulated x dp 2, 512 tokens' "$tmp/right.out" ||
    fail "train prints: $(cat "$tmp/right.out")"
tokens=$(grep '"loss"' "$tmp/right/metrics.jsonl" | grep -o '"tokens":[0-9]*' | tr '\n' ' ')
cat "$tmp"/right/dump-step-2/rank-*.jsonl | perl -MJSON::PP -ne '$r = decode_json($_);
    $sample{$r->{sample}}++; $n += @{$r->{loss}};
    END { exit($n == 512 && keys %sample == 16 ? 0 : 1) }' ||
    fail 'step 2 has not read 16 sequences of 32 tokens'
[ "$tokens" = '"tokens":512 "tokens":1024 "tokens":1536 ' ] || fail "trained on $tokens"
