# A run that resumes with other settings of the data reads no sample again before its time and
#TEST timeout=100 cores=2
# leaves none out, or it is refused with both values, or a line says what follows. Steps of one
# sample each; debug.token_hash tells which.
. tests/lib_resume.sh
make_run
set -- $open_end train.global_batch=1 checkpoint.on_exit=true optimizer.warmup_steps=0
zstd -dcq "$tmp/train.tok.zst" >"$tmp/ids"
piece() { tail -c +$(($2 * 64 + 1)) "$tmp/ids" | head -c $(($3 * 64 + 2)) >"$tmp/$1.u16"; }
piece a 0 16 # samples of 32 tokens and one token more
piece b 16 8
piece c 24 8

# hashes NAME FROM TO: what those steps have read.
hashes() {
    perl -ne 'print "$2\n" if /"step":(\d+),.*"token_hash":"(\w+)"/ && $1 >= '"$2 && \$1 <= $3" \
        "$tmp/$1/metrics.jsonl"
}

# Of a step's samples it is the sum modulo 2^64.
sum() { perl -ne 'use integer; $s += hex; END { printf "%x\n", $s }'; }

# each_once NAME FROM TO N: those steps have read N samples, none of them twice.
each_once() {
    [ "$(hashes "$1" "$2" "$3" | sort -u | wc -l)" = "$4" ] &&
        [ "$(hashes "$1" "$2" "$3" | wc -l)" = "$4" ] ||
        fail "$1: steps $2 to $3: $(hashes "$1" "$2" "$3" | sort | uniq -c)"
}

# goes_on FROM NAME STEPS [key=value ...]: a copy of the run FROM, to that step.
goes_on() {
    g_from=$1 g_name=$2 g_steps=$3
    shift 3
    cp -r "$tmp/$g_from" "$tmp/$g_name"
    must_train "$g_name" 1 train.steps="$g_steps" "$@"
}

# differs FROM WORDS [key=value ...]: refused.
differs() {
    d_from=$1 d_words=$2
    shift 2
    code=0
    train "$d_from" 1 train.steps=16 "$@" || code=$?
    [ $code = 78 ] || fail "$*: exit code $code: $(cat "$tmp/$d_from.out")"
    grep -q -e "$d_words" "$tmp/$d_from.err" ||
        fail "$*: '$d_words' is not in $(cat "$tmp/$d_from.err")"
}

# said NAME LINE
said() { grep -q -e "$2" "$tmp/$1.out" || fail "$1: '$2' is not in $(cat "$tmp/$1.out")"; }

one="data.train=$tmp/a.u16"
two="data.train=[{path: $tmp/a.u16}, {path: [$tmp/b.u16, $tmp/c.u16]}]"
must_train one 1 "$@" "$one" train.steps=8
must_train two 1 "$@" "$two" train.steps=8

differs one 'run.seed: 1234 in the checkpoint, 7 now' "$@" "$one" run.seed=7
differs one 'data.shuffle: true in the checkpoint, false now' "$@" "$one" data.shuffle=false
differs one 'data.heldout_share: 0 in the checkpoint, 0.25 now' "$@" "$one" \
    data.heldout_share=0.25
differs one 'fingerprint .* a shard was added' "$@" "data.train=[$tmp/a.u16, $tmp/b.u16]"
differs one 'source 1, eod_id: -1 in the checkpoint, 32 now' "$@" \
    "data.train={path: $tmp/a.u16, eod_id: 32}"
differs one 'train.steps 17 take 17 sequences, data.max_epochs 1 gives 16' "$@" "$one" \
    train.steps=17 data.max_epochs=1
differs two '2 sources in the checkpoint, 1 now' "$@" \
    "data.train=[$tmp/a.u16, $tmp/b.u16, $tmp/c.u16]"
differs two 'source 1 has 16 samples in the checkpoint, 24 now: its shards' "$@" \
    "data.train=[{path: [$tmp/a.u16, $tmp/b.u16]}, {path: $tmp/c.u16}]"

# the rest of the epoch, whatever else has changed
cp "$tmp/a.u16" "$tmp/moved.u16"
goes_on one same 16 "$@" "data.train=$tmp/moved.u16" data.on_bad_shard=skip data.max_epochs=1 \
    "data.heldout=$tmp/b.u16"
each_once same 1 16 16
goes_on one batch 12 "$@" "$one" train.global_batch=2
[ "$(hashes batch 1 12 | sum)" = "$(hashes same 1 16 | sum)" ] ||
    fail 'two samples a step: not those of the epoch'

# each source from its own count: 4 + 12 of the first, 4 + 4 of the second; then as if not stopped
more="data.train=[{path: $tmp/a.u16, weight: 3}, {path: [$tmp/b.u16, $tmp/c.u16]}]"
goes_on two weights 24 "$@" "$more"
each_once weights 1 24 24
said weights 'source 1, share 0.5 in the checkpoint, 0.75 now: .*a.u16 continues after the 4'
goes_on two parts 13 "$@" "$more"
must_train parts 1 "$@" "$more" train.steps=24
said parts 'resume .*: step 13, '
same weights parts 0
goes_on one added 24 "$@" "data.train=[{path: $tmp/a.u16}, {path: $tmp/b.u16}]"
each_once added 1 24 24
said added 'source 2, not in the checkpoint, share 0.5 now: .*b.u16 begins with its first sample'

# sequences of another length: at the same token of each source
must_train short 1 "$@" "$one" data.sequence_length=16 data.shuffle=false train.steps=32
must_train long 1 "$@" "$one" data.shuffle=false train.steps=8
goes_on long cut 24 "$@" "$one" data.shuffle=false data.sequence_length=16
[ "$(hashes cut 9 24)" = "$(hashes short 17 32)" ] || fail 'not at the same token'
said cut 'of 32 tokens in the checkpoint, 16 now: .* number 16 of the 32 of its epoch 0; 0 tok'
goes_on one anew 10 "$@" "$one" data.sequence_length=24
said anew 'with number 10 of the 21 of its epoch 0, .*: about 25 % of its tokens come twice'
must_train anew 1 "$@" "$one" data.sequence_length=24 train.steps=12
grep -q 'now: .* continues with' "$tmp/anew.out" && fail 'sequences are said to have changed again'
exit 0
