# --help, -h and --version of dsv3, its commands and the tools; and what wrong command lines are
# answered.
#TEST timeout=30
. tests/lib_test.sh

# runs CODE ARGUMENT...: exit code; output in $tmp/out, $tmp/err
runs() {
    want=$1 code=0
    shift
    timeout 20 "$dsv3" "$@" </dev/null >"$tmp/out" 2>"$tmp/err" || code=$?
    [ $code = "$want" ] || fail "dsv3 $*: exit code $code, expected $want: $(cat "$tmp/err")"
}
# page USAGE ARGUMENT...: a page of help on standard output that begins with that usage
page() {
    begin=$1
    shift
    runs 0 "$@"
    [ ! -s "$tmp/err" ] || fail "dsv3 $*: $(cat "$tmp/err")"
    head -n 1 "$tmp/out" | grep -q "^usage: $begin" || fail "dsv3 $*: $(head -n 1 "$tmp/out")"
    grep -A1 '^Examples*:$' "$tmp/out" | grep -q '^  .*dsv3 ' || fail "dsv3 $*: no example"
    ! grep -n '.\{101\}' "$tmp/out" || fail "dsv3 $*: a line of more than 100 columns"
}

for h in --help -h; do
    page 'dsv3 COMMAND' $h
    for command in train plan check generate report; do
        page "dsv3 $command \(FILE\|RUN\)" $command $h
        page "dsv3 $command \(FILE\|RUN\)" $command none.yaml $h
    done
done
page 'dsv3 COMMAND' help
page 'dsv3 plan FILE' help plan

# A page names no option that its command does not know.
for command in plan check; do
    runs 0 $command --help
    for option in $(sed -n 's/^  \(--[a-z]*\).*/\1/p' "$tmp/out"); do
        [ $option != --reference ] || continue
        runs 64 $command $option
        ! grep 'unknown option' "$tmp/err" || fail "dsv3 $command has no $option"
    done
done

runs 0 --version
head -n 1 "$tmp/out" | grep -qx 'dsv3 [^ ]*' || fail "--version: $(head -n 1 "$tmp/out")"
n='[^,]*[0-9]\.[0-9][^,]*'
libraries="$n, HDF5 $n, zstd $n, zlib $n, libyaml $n, Jansson $n, xxHash $n"
grep -q "^libraries  $libraries\$" "$tmp/out" || fail "$(cat "$tmp/out")"
grep -q '^built      for .* with .*, by [a-z]* [0-9]' "$tmp/out" || fail "$(cat "$tmp/out")"

# Wrong command lines: one line, and how to go on.
wrong() {
    says=$1
    shift
    runs 64 "$@"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "dsv3 $*: $(cat "$tmp/err")"
    grep -qF -e "$says" "$tmp/err" || fail "dsv3 $*: '$says' is not in: $(cat "$tmp/err")"
    [ ! -s "$tmp/out" ] || fail "dsv3 $*: printed $(cat "$tmp/out")"
}
run=configs/runs/demo.yaml
runs 64
wrong 'no command trian' trian $run
wrong 'no command --plan' --plan $run
wrong 'unknown option --what; see dsv3 train --help' train --what $run
wrong 'unknown option --json' train $run --json
wrong 'a key is set without dashes' train $run --train.steps=5
wrong 'usage: dsv3 train FILE' train
wrong 'unknown option --reference' check $run --reference
wrong '--ranks: found nothing' plan $run --ranks
wrong '--ranks: found 4x' plan $run --ranks 4x
wrong '--ranks: found -1' check $run --ranks -1
wrong '--ranks is missing' plan $run
wrong 'found "-", expected the name of a file' check -
wrong 'found "", expected the name of a file' train ''

# So is a configuration that is none: one line, nothing begun, no place in our source.
refused() {
    says=$1
    shift
    runs 78 "$@"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "dsv3 $*: $(cat "$tmp/err")"
    grep -qF -e "$says" "$tmp/err" || fail "dsv3 $*: '$says' is not in: $(cat "$tmp/err")"
    ! grep -e 'src/' -e '\.c:[0-9]' -e ' || ' -e ' && ' "$tmp/err" || fail "dsv3 $*: names source"
}
mkfifo "$tmp/fifo"
printf 'a: [1' >"$tmp/torn.yaml"
printf 'base: loop.yaml\n' >"$tmp/loop.yaml"
for command in check train; do
    refused '.: cannot be read: not a regular file but a directory' $command .
    refused 'fifo: cannot be read: not a regular file but a pipe' $command "$tmp/fifo"
    refused '/dev/zero: cannot be read' $command /dev/zero
    refused 'none.yaml: cannot be read: No such file' $command "$tmp/none.yaml"
    refused 'torn.yaml:2:1: not YAML' $command "$tmp/torn.yaml"
    refused 'loop.yaml:1:7: cannot read' $command "$tmp/loop.yaml"
    refused 'train is a section, expected one of its keys' $command $run train=5
    refused 'found text "=5", expected section.key=value' $command $run =5
    refused 'found text "no", expected section.key=value' $command $run no
    refused 'run.dir: found text ""' $command $run run.dir=
    refused 'train.steps: found 1e99' $command $run train.steps=1e99
    refused 'optimizer.lr: found nan' $command $run optimizer.lr=nan
done

for page in --help --version 'check --help' 'check --reference'; do
    code=0
    "$dsv3" $page >/dev/full 2>"$tmp/err" || code=$?
    [ $code = 74 ] || fail "dsv3 $page >/dev/full: exit code $code"
    grep -q 'standard output: No space left' "$tmp/err" || fail "$page: $(cat "$tmp/err")"
done

for tool in tokenize ckpt bigram; do
    dsv3=$DSV3_BUILD/dsv3-$tool
    for page in -h --help --version; do
        runs 0 $page
        grep -q "^\(usage: \|\)dsv3-$tool [^ ]" "$tmp/out" || fail "$tool $page: $(cat "$tmp/out")"
        code=0
        "$dsv3" $page >/dev/full 2>"$tmp/err" || code=$?
        [ $code = 74 ] || fail "dsv3-$tool $page >/dev/full: exit code $code"
    done
    wrong "see dsv3-$tool --help" --what
    wrong "see dsv3-$tool --help"
done
