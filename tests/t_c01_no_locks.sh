# Somebody holds a lock on a checkpoint's file, or HDF5 is told to lock: saving and reading take no
#TEST timeout=60 cores=2
# locks and do not notice.
. tests/lib_resume.sh
make_run
command -v flock >/dev/null || exit 77

first run 2 2
file=$tmp/run/checkpoints/step-00000002/tensors-00000.h5
flock -x "$file" sleep 60 &
holder=$!
trap 'kill $holder 2>/dev/null || :' EXIT
while flock -n -x "$file" true; do sleep 0.1; done
for how in TRUE FALSE BEST_EFFORT; do
    cp -r "$tmp/run" "$tmp/again-$how"
    HDF5_USE_FILE_LOCKING=$how first "again-$how" 2 3
    resumed_at "again-$how" 2
done
HDF5_USE_FILE_LOCKING=TRUE first run 2 3
resumed_at run 2
flock -n -x "$file" true && fail 'the lock was lost'
[ -e "$tmp/run/checkpoints/step-00000003/manifest.json" ] || fail 'not saved'
