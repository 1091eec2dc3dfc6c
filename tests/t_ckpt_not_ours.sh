# What a run has not made itself is never removed: checkpoints behind links, under other names, in
#TEST timeout=100 cores=2
# places that are away; and what a start gives up on request is named.
. tests/lib_resume.sh
! grep -rnE 'overwrite: *true|resume: *none' configs/runs configs/models || fail 'in a run file'
. tests/lib_faulty.sh
make_run
saving="$small checkpoint.every=2 checkpoint.keep_last=1 train.eval_every=0 run.overwrite=false"

# copy NAME: a run that has saved steps 2 and 4, and its root.
copy() {
    cp -r "$tmp/base" "$tmp/$1"
    root=$tmp/$1/checkpoints
}
must_train base 1 $saving train.steps=4 checkpoint.keep_last=0
"$DSV3_BUILD/tests/ckpt_digest" "$tmp/base/checkpoints/step-00000004" >"$tmp/four"

# on NAME [key=value ...]: the same command, two steps further.
on() {
    on_name=$1
    shift
    must_train "$on_name" 1 $saving train.steps=6 "$@"
}
# left NAME NAMES: what lies in its checkpoints.
left() {
    [ "$(cd "$tmp/$1/checkpoints" && echo *)" = "$2" ] ||
        fail "$1: left $(ls "$tmp/$1/checkpoints"), expected $2: $(cat "$tmp/$1.out")"
}
is_four() {
    "$DSV3_BUILD/tests/ckpt_digest" "$1" | cmp - "$tmp/four" || fail "$1 has been changed"
}

copy root
mv "$root" "$tmp/elsewhere"
ln -s "$tmp/elsewhere" "$root"
on root run.resume="$tmp/elsewhere/step-00000004"
resumed_at root 4
[ -L "$root" ] || fail 'the link to the checkpoints is gone'
left root 'latest step-00000006'
[ "$(grep -c '"loss"' "$tmp/root/metrics.jsonl")" = 6 ] || fail 'root: other metrics'

copy newest
mv "$root/step-00000004" "$tmp/far"
ln -s "$tmp/far" "$root/step-00000004"
on newest run.resume="$root/step-00000004"
resumed_at newest 4
left newest 'latest step-00000006'
is_four "$tmp/far"

copy pruned
mv "$root/step-00000004" "$tmp/archive"
ln -s "$tmp/archive" "$root/step-00000004"
cp -r "$root/step-00000002" "$root/step-00000008"
"$DSV3_BUILD/dsv3-ckpt" prune "$root" --keep-last 1 >/dev/null
left pruned 'latest step-00000008'
is_four "$tmp/archive"

copy away
rm -r "$root"
ln -s "$tmp/not-mounted/checkpoints" "$root"
fails 74 'cannot open .*/away/checkpoints: No such file' away 1 $saving train.steps=4
[ "$(cat "$tmp/base/metrics.jsonl")" = "$(cat "$tmp/away/metrics.jsonl")" ] || fail 'away: metrics'

copy renamed
mkdir "$root/keep"
mv "$root/step-00000004" "$root/keep"
mv "$root/step-00000002" "$root/step-00000002.good"
for more in '' run.resume=none train.steps=5; do
    fails 78 'renamed/metrics.jsonl reports a checkpoint of step 4, but .*run.resume=PATH' renamed \
        1 $saving train.steps=4 $more
done
left renamed 'keep latest step-00000002.good'
on renamed run.resume="$root/keep/step-00000004"
resumed_at renamed 4
left renamed 'keep latest step-00000002.good step-00000006'
echo mine >"$root/step-00000006/notes"
train renamed 1 $saving train.steps=6 run.resume=none run.overwrite=true run.exit_after=1e-9 &&
    fail "renamed: was not stopped"
grep -q '^warning .*removing all checkpoints .*, the newest of step 6$' "$tmp/renamed.err" ||
    fail "renamed: not said: $(cat "$tmp/renamed.err")"
grep -q '^stopped by run.exit_after after .*: saved, run.resume=auto resumes' "$tmp/renamed.out" ||
    fail "renamed: $(cat "$tmp/renamed.out")"
left renamed 'keep latest step-00000001 step-00000002.good step-00000006'
[ "$(ls "$root/step-00000006")" = notes ] || fail 'renamed: a file of the user is gone'
is_four "$root/keep/step-00000004"

# `latest` is no condition: here it is a copy, as on file systems without links, of the wrong step.
copy copied
rm "$root/latest"
cp -r "$root/step-00000002" "$root/latest"
on copied
resumed_at copied 4
grep -q '^warning .*copied/checkpoints/latest: .*; checkpoints are good without' \
    "$tmp/copied.err" || fail "copied: $(cat "$tmp/copied.err")"
left copied 'latest step-00000006'
cp -r "$root/step-00000006" "$root/step-00000008"
rm "$root/step-00000008/config.yaml" "$root/step-00000008/manifest.json"
"$DSV3_BUILD/dsv3-ckpt" show "$tmp/copied" >"$tmp/shown" 2>&1 || fail "$(cat "$tmp/shown")"
grep -q 'skipping checkpoint .*/step-00000008 (' "$tmp/shown" || fail "$(cat "$tmp/shown")"
grep -q '^step  *6' "$tmp/shown" || fail "shown: $(cat "$tmp/shown")"
rm -r "$root/latest"
ln -s step-00000099 "$root/latest"
"$DSV3_BUILD/dsv3-ckpt" diff "$root/latest" "$root/step-00000006" >"$tmp/shown" 2>&1 ||
    fail "a link to nothing: $(cat "$tmp/shown")"

# Paths of any length are whole, or refused before anything is made.
long=$(perl -e 'my $dir = "$ARGV[0]/long"; $dir .= "/" . "x" x 200 while length $dir < 3690;
    print $dir, "/", "y" x (3900 - length($dir) - 1)' "$tmp")
must_train long 1 $saving train.steps=2 run.dir="$long"
"$DSV3_BUILD/tests/ckpt_digest" "$long/checkpoints/step-00000002" >"$tmp/two" ||
    fail 'a long path: not whole'
[ "$(wc -l <"$tmp/two")" = 1 ] || fail 'a long path: no checkpoint'
code=0
train longer 1 $saving train.steps=2 run.dir="$long/$(printf %0180d 0)" || code=$?
[ $code = 78 ] && [ ! -e "$long/$(printf %0180d 0)" ] &&
    grep -q 'run.dir: found a path of 4081 bytes' "$tmp/longer.err" ||
    fail "longer: $(cat "$tmp/longer.err")"

# The metrics may lie elsewhere: they are cut there.
copy metrics
mv "$tmp/metrics/metrics.jsonl" "$tmp/lines"
ln -s ../lines "$tmp/metrics/metrics.jsonl"
rm -r "$root/step-00000004"
on metrics
resumed_at metrics 2
grep -q '^warning .*reports a checkpoint of step 4 that is not in .*after 2 are' \
    "$tmp/metrics.err" || fail "metrics: $(cat "$tmp/metrics.err")"
[ -L "$tmp/metrics/metrics.jsonl" ] || fail 'the link to the metrics is gone'
[ "$(grep -c '"loss"' "$tmp/lines")" = 6 ] || fail "metrics: $(cat "$tmp/lines")"
echo ok
