# The end of the data is known before the start, and the same for all ranks: what data.max_epochs
#TEST timeout=100 cores=2
# gives is trained and the exit code is 0, more is refused with the counts, and without a limit the
# data are read again. No rank finds out alone.
. tests/lib_train.sh
make_run

# sequences N: a shard of N sequences of 32 and their last label.
sequences() {
    awk -v n=$(($1 * 32)) 'BEGIN { for (i = 0; i < n; i++) printf "%c", 97 + i * i % 26 }' \
        >"$tmp/text-$1"
    "$DSV3_BUILD/dsv3-tokenize" --out "$tmp/$1.tok.zst" "$tmp/text-$1" >/dev/null
}
sequences 65
sequences 32
n_steps() { grep -c '"loss"' "$tmp/$1/metrics.jsonl"; }
refused() {
    words=$1 name=$2
    shift
    code=0
    train "$@" || code=$?
    [ $code = 78 ] || fail "$name: exit code $code: $(cat "$tmp/$name.out")"
    grep -q "$words" "$tmp/$name.out" || fail "$name: $(cat "$tmp/$name.out")"
    [ ! -e "$tmp/$name" ] || fail "$name: has begun"
}

options='train.global_batch=4 data.heldout=[]'
for np in 4 2 1; do
    must_train "epoch-$np" $np $options data.train="$tmp/65.tok.zst" data.max_epochs=1 \
        train.steps=16
    grep -q ' 65 sequences of 32 an epoch, 0.985 epochs in all' "$tmp/epoch-$np.out" ||
        fail 'not 65 sequences'
    [ "$(n_steps epoch-$np)" = 16 ] || fail "$(n_steps epoch-$np) steps of 16 on $np ranks"
    same epoch-4 epoch-$np 1e-5 # F32 sums in another order
done
# One sequence is left over: not a step of its own.
refused 'train.steps 17 take 68 sequences, data.max_epochs 1 gives 65' beyond 4 $options \
    data.train="$tmp/65.tok.zst" data.max_epochs=1 train.steps=17
refused 'train.steps 16 take 64 sequences, data.max_epochs 1 gives 32' half 4 $options \
    data.train="$tmp/32.tok.zst" data.max_epochs=1 train.steps=16
# A batch that grows takes more: 4 x 4, then 8 a step.
refused 'train.steps 11 take 72 sequences, data.max_epochs 1 gives 65' ramp 4 $options \
    data.train="$tmp/65.tok.zst" data.max_epochs=1 train.steps=11 train.schedule_unit=steps \
    train.global_batch_stages='[{until: 4, value: 4}, {until: 5, value: 8}]'
must_train again 4 $options data.train="$tmp/65.tok.zst" train.steps=17
[ "$(n_steps again)" = 17 ] || fail "$(n_steps again) steps of 17 without a limit"
must_train twice 2 $options data.train="$tmp/32.tok.zst" data.max_epochs=2 train.steps=16
[ "$(n_steps twice)" = 16 ] || fail "$(n_steps twice) steps of 16 in two epochs"
echo ok
