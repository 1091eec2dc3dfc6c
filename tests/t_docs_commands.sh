# The plans and checks that README.md and docs/ show are what the program prints.
#TEST timeout=60
. tests/lib_test.sh
root=$PWD
ln -s "$root/configs" "$tmp/configs"
ln -s "$DSV3_BUILD" "$tmp/build"
cd "$tmp"
perl "$root/tests/docs_commands" "$root/README.md" "$root"/docs/*.md
