# lib_check.sh - for tests of what a configuration may say (". tests/lib_check.sh"): spoil a whole
# configuration and read what `dsv3 check` and `dsv3 train` answer.
. tests/lib_test.sh

# write NAME: standard input becomes NAME.yaml, a run of the model of tests/tiny.yaml.
write() {
    {
        echo "base: $PWD/tests/tiny.yaml"
        cat
    } >"$tmp/$1.yaml"
}

# check NAME [ARGUMENT ...]: output in $tmp/out and $tmp/err; the exit code is the program's.
check() {
    file=$tmp/$1.yaml
    shift
    code=0
    timeout $((10 * ${DSV3_TIMEOUT_SCALE:-1})) "$dsv3" check "$file" "$@" \
        >"$tmp/out" 2>"$tmp/err" || code=$?
    return $code
}

# accepts NAME WORDS [ARGUMENT ...]: and prints the words.
accepts() {
    name=$1 words=$2
    shift 2
    check "$name" "$@" || fail "$name $*: exit code $?: $(cat "$tmp/err")"
    grep -qF -e "$words" "$tmp/out" || fail "$name $*: '$words' is not in: $(cat "$tmp/out")"
}

# refuses NAME WORDS [ARGUMENT ...]: with exit code 78 and the words in one line, which, when they
# begin with a number, is that of the file NAME.yaml.
refuses() {
    name=$1 words=$2
    shift 2
    code=0
    check "$name" "$@" || code=$?
    [ $code = 78 ] || fail "$name $*: exit code $code, expected 78: $(cat "$tmp/err")"
    case $words in [0-9]*) words="$name.yaml:$words" ;; esac
    grep -qF -e "$words" "$tmp/err" || fail "$name $*: '$words' is not in: $(cat "$tmp/err")"
}
