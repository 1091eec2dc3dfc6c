# With on_error=warn as well, a run fails whose last save has failed, or that cannot make its
#TEST timeout=60 cores=2
# directory of checkpoints at the start; what failed before the last save does not matter.
. tests/lib_train.sh
. tests/lib_faulty.sh
make_run
saving="$small checkpoint.keep_last=0 checkpoint.on_error=warn run.overwrite=false
    train.eval_every=0 train.steps=6 checkpoint.every=2"

# lost NAME WARNINGS [key=value ...]: all steps are done and reported, that of step 6 is not there.
lost() {
    name=$1 warnings=$2
    shift 2
    code=0
    faulty 'FAULTY_HOW=ENOSPC FAULTY_AT=every FAULTY_CALL=write FAULTY_PATH=step-00000006' \
        train "$name" 2 $saving "$@" || code=$?
    [ $code = 74 ] || fail "$name: exit code $code: $(cat "$tmp/$name.err")"
    [ "$(grep -c '^warning .*of step 6: .*No space left on device$' "$tmp/$name.err")" = \
        "$warnings" ] || fail "$name: $(cat "$tmp/$name.err")"
    grep -q '^warning .*its last checkpoint could not be written: .* resumes after step 4$' \
        "$tmp/$name.err" || fail "$name: $(cat "$tmp/$name.err")"
    [ "$(wc -l <"$tmp/$name.err")" = $((warnings + 1)) ] || fail "$name: more lines"
    grep -q '^done: 6 steps' "$tmp/$name.out" || fail "$name: no end: $(cat "$tmp/$name.out")"
    grep -q '"step":6,.*"loss"' "$tmp/$name/metrics.jsonl" || fail "$name: step 6 not reported"
    [ "$(ls "$tmp/$name/checkpoints" | tr '\n' ' ')" = 'latest step-00000002 step-00000004 ' ] ||
        fail "$name: checkpoints $(ls "$tmp/$name/checkpoints")"
    must_train "$name" 2 $saving "$@"
    grep -q '^resume .*/step-00000004: ' "$tmp/$name.out" || fail "$name: began anew"
    only_those_of whole "$name"
    [ "$(wc -l <"$tmp/$name.digests")" = 3 ] || fail "$name: not three checkpoints"
}
faulty '' must_train whole 2 $saving
checkpoints_of whole >"$tmp/whole.digests"
later lost twice 2 checkpoint.on_exit=true # the end tries it once more
later lost once 1 checkpoint.on_exit=false

# Another one failed, or the last one at first.
earlier() {
    name=$1
    faulty "FAULTY_HOW=EIO FAULTY_CALL=rename $2" must_train "$name" 2 $saving \
        checkpoint.on_exit=true
    [ "$(wc -l <"$tmp/$name.err")" = 1 ] || fail "$name: $(cat "$tmp/$name.err")"
    [ -e "$tmp/$name/checkpoints/step-00000006" ] || fail "$name: no checkpoint"
}
later earlier middle 'FAULTY_AT=every FAULTY_PATH=step-00000004'
later earlier again 'FAULTY_AT=1 FAULTY_PATH=step-00000006'

# No directory to begin with; no place for its layout.
later faulty 'FAULTY_HOW=EIO FAULTY_AT=1 FAULTY_CALL=mkdir' fails 74 \
    '^fatal .*cannot make .*/mkdir/checkpoints: Input/output error' mkdir 2 $saving
later faulty 'FAULTY_HOW=ENOSPC FAULTY_AT=every FAULTY_CALL=open FAULTY_PATH=layout.tmp' fails 74 \
    '^fatal .*checkpoints: .*No space left on device' layout 2 $saving
finish
echo ok
