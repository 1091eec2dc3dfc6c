# The file system fills up in the middle of a save, with checkpoint.keep_last=1: the checkpoint
#TEST timeout=60 cores=2
# before is untouched and still the latest, and how much is needed and how much is free is said.
if [ -z "${own_mounts:-}" ] && unshare -rm true 2>/dev/null; then
    own_mounts=1 exec unshare -rm sh "$0"
fi
. tests/lib_train.sh
. tests/lib_faulty.sh
. tests/lib_stop.sh
make_run
saving="$small checkpoint.every=2 train.eval_every=0"
faulty '' must_train whole 2 $saving train.steps=10 checkpoint.keep_last=0
checkpoints_of whole >"$tmp/whole.digests"
bytes=$(stat -c %s "$tmp/whole/checkpoints/latest/tensors-00000.h5")
saving="$saving checkpoint.keep_last=1"

# latest_is NAME STEP: the only one is whole, and is what the undisturbed run had.
latest_is() {
    [ "$(readlink "$tmp/$1/checkpoints/latest")" = "$(printf step-%08d "$2")" ] ||
        fail "$1: latest is $(readlink "$tmp/$1/checkpoints/latest"), expected step $2"
    only_those_of whole "$1"
    [ "$(wc -l <"$tmp/$1.digests")" = 1 ] || fail "$1: not one checkpoint"
}

# Files that may not grow beyond two thirds of what is to be written, which is found at the start.
# MPI itself has none.
must_train grow 2 $saving train.steps=2
{
    echo '#!/bin/sh'
    echo "ulimit -f $((bytes * 2 / 3 / 512))"
    echo "exec '$dsv3' \"\$@\""
} >"$tmp/limited"
chmod +x "$tmp/limited"
(
    export OMPI_MCA_btl=self,tcp
    dsv3=$tmp/limited
    fails 74 '^fatal .*checkpoints: .*/grow/checkpoints/.*File too large' grow 2 $saving \
        train.steps=4
)
latest_is grow 2
[ ! -e "$tmp/grow/checkpoints/step-00000004.tmp" ] || fail "grow: left behind"

if [ -z "${own_mounts:-}" ]; then
    echo "skipped: no file system can be mounted here"
    exit 77
fi
mkdir "$tmp/small"
mount -t tmpfs -o size=$((bytes * 3 / 2)) none "$tmp/small"

# Too small for a second one: known before the first byte.
must_train small/one 2 $saving train.steps=2
fails 74 "^fatal .*step 4: .*checkpoints: a checkpoint takes $bytes bytes, [1-9][0-9]* are free$" \
    small/one 2 $saving train.steps=4
latest_is small/one 2
rm -r "$tmp/small/one"
mount -o remount,size=$((bytes * 5)) "$tmp/small"

# Filled by others while the save is on its way, for which a rank waits: the space was there when it
# began. The run ends without a new one; when the disk has room again, the same command resumes.
# What this test writes lies beside it.
mkdir "$tmp/small/two"
ln -s small/two "$tmp/two"
must_train two 2 $saving train.steps=2
set -- $saving checkpoint.every=4 train.steps=8 checkpoint.on_error=warn
{
    within 60 'step 4' test -e "$tmp/two/checkpoints/step-00000004.tmp"
    within 60 'rank 1' find_stopped two
    cat /dev/zero >"$tmp/small/filled" 2>/dev/null || :
    kill -CONT "$stopped"
} &
code=0
train two 2 "$@" debug.fault=stop debug.fault_rank=1 debug.fault_at='step 4, checkpoint' ||
    code=$?
wait $! || exit 1
[ $code = 74 ] || fail "two: exit code $code: $(cat "$tmp/two.err")"
grep -q '^warning .*step 4: .*tensors-00000.h5.*: No space left on device; training continues$' \
    "$tmp/two.err" || fail "two: $(cat "$tmp/two.err")"
latest_is two 2
rm "$tmp/small/filled"
must_train two 2 "$@"
grep -q '^resume .*/step-00000002: ' "$tmp/two.out" || fail "$(cat "$tmp/two.out")"
latest_is two 8
echo ok
