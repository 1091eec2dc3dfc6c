# Files and directories that lie where a checkpoint will be written, under its temporary name and
#TEST timeout=60 cores=2
# under its own, hold up no rank; what was not finished is named and not read.
. tests/lib_resume.sh
make_run
set -- topology.ep=2 debug.param_hash=true checkpoint.every=2

first whole 4 8 "$@"
first parts 4 2 "$@"
root=$tmp/parts/checkpoints
echo garbage >"$root/step-00000004.tmp"
mkdir "$root/step-00000006.tmp" "$root/step-00000006" "$root/step-00000008.tmp"
echo garbage >"$root/step-00000006/manifest.json"
echo garbage >"$root/step-00000008.tmp/manifest.json"
first parts 4 8 "$@"
same_end whole parts
resumed_at parts 2
for line in 'step-00000008.tmp is unfinished' \
    'skipping checkpoint .*step-00000006 (.*manifest.json'; do
    grep -q "$line" "$tmp/parts.out" || fail "'$line' is not in: $(cat "$tmp/parts.out")"
done
[ "$(cd "$root" && echo *)" = 'latest step-00000006 step-00000006.left step-00000008' ] ||
    fail "left in $root: $(ls "$root")"
