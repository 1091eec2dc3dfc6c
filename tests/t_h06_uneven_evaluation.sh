# The held-out loss is a mean over exactly the held-out sequences, however many ranks share them;
#TEST timeout=100 cores=1
# evaluations come when asked for (t_n16_eval_fill_up.sh: they change nothing in the training).
. tests/lib_train.sh
make_run

# evals NAME: "step eval_tokens" of each evaluation.
evals() {
    perl -MJSON::PP -ne '$r = decode_json($_); print "$r->{step} $r->{eval_tokens}\n"
        if defined $r->{eval_loss}' "$tmp/$1/metrics.jsonl"
}
# held_out N: a held-out set of N sequences of 32 and a bit more, in one document.
held_out() {
    awk -v n=$(($1 * 32 + 20)) 'BEGIN { for (i = 0; i < n; i++) printf "%c", 97 + i * i % 26 }' \
        >"$tmp/text-$1"
    "$DSV3_BUILD/dsv3-tokenize" --out "$tmp/heldout-$1.tok.zst" "$tmp/text-$1" >/dev/null
}
held_out 13
held_out 1
held_out 0

# Thirteen do not come out even with 2, 4 or 8 sequences a round. 1e-6: F32 sums in another order.
options='train.micro_batch=2 train.steps=2 train.eval_every=1 run.deadline_s=30'
while read -r name np more; do
    must_train "$name" "$np" $options data.heldout="$tmp/heldout-13.tok.zst" $more
    [ "$(evals "$name")" = "1 416
2 416" ] || fail "$name evaluated: $(evals "$name")"
    same np1 "$name" 1e-6
done <<MESHES
np1 1
np2 2
np4 4
tp2 2 topology.tp=2 topology.ep=2
MESHES

must_train one 4 $options data.heldout="$tmp/heldout-1.tok.zst"
[ "$(evals one | tail -1)" = "2 32" ] || fail "one sequence: $(evals one)"
must_train part 2 $options data.heldout="$tmp/heldout-13.tok.zst" train.eval_sequences=5
[ "$(evals part | tail -1)" = "2 160" ] || fail "five sequences: $(evals part)"

code=0
train zero 2 $options data.heldout="$tmp/heldout-0.tok.zst" || code=$?
[ $code = 65 ] || fail "no held-out sequence: exit code $code"
grep -q 'heldout data: .*tokens found, a sample needs 33' "$tmp/zero.out" ||
    fail "no held-out sequence: $(cat "$tmp/zero.out")"
[ ! -e "$tmp/zero" ] || fail 'the refused run has left something behind'

# Every second step and at the end.
must_train every-2 1 train.eval_every=2
[ "$(evals every-2 | cut -d' ' -f1 | tr '\n' ' ')" = '2 4 5 ' ] || fail "$(evals every-2)"
echo ok
