# Two runs in one run.dir: the second is refused, whenever it comes; one that was killed holds up
#TEST timeout=100 cores=2
# nobody; one whose directory another has taken ends and writes nothing more.
. tests/lib_resume.sh
. tests/lib_faulty.sh
. tests/lib_stop.sh
make_run
saving="$small checkpoint.every=2 train.eval_every=0 train.steps=6 train.log_every=1"

# At the same moment, with other settings: one trains all its steps, the other says why not, unless
# it comes when that is done.
both() {
    pair=pair$1
    for lr in 1e-3 2e-3; do
        (
            tmp=$tmp/$lr && mkdir -p "$tmp" && cp "${tmp%/*}/run.yaml" "$tmp" && code=0
            train "$pair" 1 $saving run.dir="${tmp%/*}/$pair" optimizer.lr=$lr || code=$?
            echo $code >"$tmp/$pair.code"
        ) &
    done
    wait
    codes=$(cat "$tmp/1e-3/$pair.code" "$tmp/2e-3/$pair.code" | sort | xargs)
    case $codes in
    '0 0') ;;
    '0 78')
        grep -q 'run.dir: another run \(is\|was\) at work' "$tmp"/*e-3/$pair.err ||
            fail "$pair: $(cat "$tmp"/*e-3/$pair.err)"
        ;;
    *) fail "$pair: $codes: $(cat "$tmp"/*e-3/$pair.err)" ;;
    esac
    checkpoints_of $pair >"$tmp/$pair.digests" || fail "$pair: a checkpoint that is not whole"
    [ "$(wc -l <"$tmp/$pair.digests")" = 2 ] || fail "$pair: $(cat "$tmp/$pair.digests")"
    [ "$(grep -c '"loss"' "$tmp/$pair/metrics.jsonl")" = 6 ] || fail "$pair: metrics"
}
for i in 1 2 3; do later both $i; done
finish

# While one is at work, of which a rank hangs. It is killed; the same command resumes.
hangs() {
    name=$1
    train "$name" 2 $saving checkpoint.every=1 debug.fault=hang debug.fault_rank=1 \
        debug.fault_at='step 4, losses' &
    mpirun=$!
    within 60 'step 2' test -e "$tmp/$name/checkpoints/step-00000002/manifest.json"
}
hangs busy
within 60 'step 3' grep -q '"step":3,.*"loss"' "$tmp/busy/metrics.jsonl"
cp "$tmp/busy/metrics.jsonl" "$tmp/lines"
ranks=$(ranks_of busy)
[ -e "$tmp/busy/owner" ] || fail 'busy: no owner'
code=0
train second 2 $saving run.dir="$tmp/busy" optimizer.lr=2e-3 run.resume=none || code=$?
[ $code = 78 ] && grep -q "another run is at work there: process " "$tmp/second.err" ||
    fail "second: exit code $code: $(cat "$tmp/second.err")"
head -c "$(wc -c <"$tmp/lines")" "$tmp/busy/metrics.jsonl" | cmp - "$tmp/lines" ||
    fail 'busy: its metrics have been touched'
kill -KILL $ranks
ended
must_train busy 2 $saving
grep -q '^resume .*/step-0000000[23]: ' "$tmp/busy.out" || fail "busy: $(cat "$tmp/busy.out")"
[ ! -e "$tmp/busy/owner" ] || fail 'busy: the owner is still there'

# Another takes it.
hangs lost
sed 's/^id ./id x/' "$tmp/lost/owner" >"$tmp/lost/owner.new"
mv "$tmp/lost/owner.new" "$tmp/lost/owner"
ended
[ $code = 74 ] || fail "lost: exit code $code: $(cat "$tmp/lost.err")"
grep -q '^fatal .*lost/owner is of process .* took this run for dead' "$tmp/lost.err" ||
    fail "lost: $(cat "$tmp/lost.err")"
checkpoints_of lost >/dev/null || fail 'lost: a checkpoint that is not whole'
! ls "$tmp"/lost/owner.* 2>/dev/null || fail 'lost: left behind'
nothing_left lost
echo ok
