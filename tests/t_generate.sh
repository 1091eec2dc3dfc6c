# dsv3 generate: the tokens of transformers' greedy generate, on any mesh; texts; draws; errors.
#TEST timeout=100 cores=2
# train.sample_every: the same text on any ranks and with the command; training does not see it.
. tests/lib_train.sh

# generate NAME RANKS ARGUMENT...: standard output in $tmp/NAME.text
generate() {
    name=$1 np=$2
    shift 2
    code=0
    mpirun -np "$np" "$dsv3" generate "$@" </dev/null >"$tmp/$name.text" 2>"$tmp/$name.err" ||
        code=$?
}
must_generate() {
    generate "$@"
    [ $code = 0 ] || fail "generate $*: exit code $code: $(cat "$tmp/$name.err")"
}

# equals GOLDEN NAME RANKS [section.key=value ...]
equals() {
    golden=$1 want=tests/golden/hf/$1/generated.txt
    shift
    [ -d "$tmp/$golden" ] ||
        "$DSV3_BUILD/dsv3-ckpt" import "tests/golden/hf/$golden" "$tmp/$golden" >/dev/null
    must_generate "$1" "$2" "$tmp/$golden" --prompt-ids "$(head -n 1 "$want")" --tokens 24 ${3:-}
    got=$(paste -sd, "$tmp/$1.text")
    [ "$got" = "$(tail -n 1 "$want")" ] || fail "$golden, $1: $got, expected $(tail -n 1 "$want")"
}
equals v3 ep 2
equals v3 tp 2 topology.tp=2
equals v3_eps one 1
equals v2 tp 2 topology.tp=2

# 21 tokens of prompt in a window of 32: 12 more, the last of which is not read again.
make_run
set -- train.steps=6 train.sample_every=3 "train.sample_prompt=of the lord they were" \
    checkpoint.every=3 train.log_every=1 train.eval_every=3
must_train plain 1 train.steps=6 train.eval_every=3
must_train one 1 "$@"
must_train three 2 "$@" topology.tp=2 run.tensorboard=true run.expert_counts=true
same plain one 0
samples() {
    sed -n '/"sample"/s/,"time".*//p' "$tmp/$1/metrics.jsonl"
}
[ "$(samples one | wc -l)" = 2 ] || fail "samples: $(samples one)"
[ "$(samples one)" = "$(samples three)" ] || fail "$(samples one) and $(samples three)"
samples one | grep -q '^{"step":3,"sample":"of the lord they were' || fail "$(samples one)"
perl -MJSON::PP -MList::Util=sum -ne '
    my $o = decode_json($_);
    for my $layer (@{$o->{expert_count} // []}) { die "$_\n" if sum(@$layer) != 256 * 4; $n++; }
    END { exit !($n == 6 * 4) }' "$tmp/three/metrics.jsonl" || fail 'expert_count'
# Bytes, and a token after each document that is none.
perl -MJSON::PP -ne 'my $o = decode_json($_);
    next unless defined $o->{eval_loss};
    my $token_bytes = $o->{eval_loss} / log(2) / $o->{eval_bits_per_byte};
    die "$token_bytes bytes a token\n" unless $token_bytes > 0.9 && $token_bytes < 1;
    $n++; END { exit !$n }' "$tmp/one/metrics.jsonl" || fail 'bits per byte'
events=$(echo "$tmp/three/tensorboard"/events.out.tfevents.*)
[ "$(grep -ac experts_entropy/moe_layer_03 "$events")" -gt 0 ] || fail "TensorBoard: $events"
grep -q '^text: 3/6  of the lord they were' "$tmp/one.out" || fail "$(cat "$tmp/one.out")"
must_generate command 1 "$tmp/one/checkpoints/step-00000006" --tokens 12 \
    --prompt 'of the lord they were'
perl -MJSON::PP -e 'print decode_json((grep { /"sample"/ } <>)[1])->{sample}, "\n"' \
    "$tmp/one/metrics.jsonl" | cmp - "$tmp/command.text" || fail 'command and sample differ'
must_generate drawn 1 "$tmp/one" --temperature 1 --seed 5
must_generate again 2 "$tmp/one" --temperature 1 --seed 5
must_generate other 1 "$tmp/one" --temperature 1 --seed 6
must_generate narrow 1 "$tmp/one" --temperature 1 --top-p 0 --tokens 20
must_generate greedy 1 "$tmp/one" --tokens 20
cmp "$tmp/drawn.text" "$tmp/again.text" || fail 'one rank and two draw differently'
! cmp -s "$tmp/drawn.text" "$tmp/other.text" || fail 'the seed changes nothing'
cmp "$tmp/narrow.text" "$tmp/greedy.text" || fail 'top-p 0 is not the most likely token'

# is_wrong CODE WORDS ARGUMENT...
is_wrong() {
    want=$1 words=$2
    shift 2
    generate wrong 1 "$@"
    [ $code = "$want" ] || fail "generate $*: exit code $code: $(cat "$tmp/wrong.err")"
    grep -q -e "$words" "$tmp/wrong.err" || fail "generate $*: $(cat "$tmp/wrong.err")"
}
is_wrong 64 'no RUN'
is_wrong 64 '--top-p: expected a number from 0 to 1, found 2' "$tmp/one" --top-p 2
is_wrong 64 'expected ids from 0 to 511' "$tmp/one" --prompt-ids 5,512
is_wrong 78 'topology.tp 3' "$tmp/one" topology.tp=3
is_wrong 78 'trained on ids of the tokenizer .*, tests/golden/tokenizer/gpt2.json is' "$tmp/one" \
    --tokenizer tests/golden/tokenizer/gpt2.json --prompt x
is_wrong 66 "$tmp/none" "$tmp/none"
echo ok
