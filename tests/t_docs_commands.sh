# What the documents show of plans, checks, shards, the demo's data and a first run is what the
# programs print, and the files and functions that they name are there.
#TEST timeout=120
. tests/lib_test.sh
root=$PWD
perl tests/docs_names README.md docs/*.md data/README.md configs/README.md tests/README.md
for directory in configs data scripts; do
    ln -s "$root/$directory" "$tmp/$directory"
done
ln -s "$DSV3_BUILD" "$tmp/build"
cd "$tmp"
perl "$root/tests/docs_commands" "$root/README.md" "$root"/docs/*.md "$root/data/README.md"
