# lib_train.sh - for tests of whole runs (". tests/lib_train.sh"): tiny data, a tiny model of the
# full architecture, and a way to train it on N ranks.
. tests/lib_test.sh

# Text of about 40 kB in documents of very different lengths, the same every time.
make_text() {
    awk 'BEGIN {
        srand(7)
        split("the of and to that in he shall unto for i his a lord they be is with", w, " ")
        for (d = 0; d < 60; d++) {
            n = 1 + int(rand() * rand() * 400)
            for (i = 0; i < n; i++) {
                word = w[1 + int(rand() * rand() * 18)]
                printf "%s%s", word, i % 9 == 8 ? ".\n" : " "
            }
            print "\n=====" } }' >"$tmp/text"
}

# The model is that of tests/tiny.yaml.
make_run() {
    make_text
    "$DSV3_BUILD/dsv3-tokenize" --separator ===== --out "$tmp/train.tok.zst" \
        --heldout "$tmp/heldout.tok.zst" --heldout-fraction 0.1 "$tmp/text" >/dev/null
    cat >"$tmp/run.yaml" <<YAML
base: $PWD/tests/tiny.yaml
run: {dir: $tmp/run}
data: {train: $tmp/train.tok.zst, heldout: $tmp/heldout.tok.zst}
YAML
}

# train NAME RANKS [section.key=value ...]: metrics in $tmp/NAME/metrics.jsonl, output in
# $tmp/NAME.out; the exit code is the program's.
train() {
    name=$1
    np=$2
    shift 2
    code=0
    timeout 120 mpirun --quiet --oversubscribe --bind-to none -np "$np" "$dsv3" train \
        "$tmp/run.yaml" "run.dir=$tmp/$name" "$@" </dev/null >"$tmp/$name.out" 2>&1 || code=$?
    return $code
}

must_train() {
    train "$@" || {
        cat "$tmp/$1.out" >&2
        fail "training $* ended with exit code $code"
    }
}

# refused CODE WORDS NAME RANKS [section.key=value ...]: training ends with this exit code and one
# message, within 20 s ($took), and has written nothing.
refused() {
    want=$1 words=$2 name=$3
    shift 2
    code=0 begin=$(date +%s)
    train "$@" || code=$?
    took=$(($(date +%s) - begin))
    said=$(cat "$tmp/$name.out")
    [ $code = "$want" ] || fail "$name: exit code $code, expected $want: $said"
    echo "$said" | grep -q -e "$words" || fail "$name: '$words' is not in: $said"
    [ "$(echo "$said" | grep -c -e fatal -e "$words")" = 1 ] || fail "$name: more than once: $said"
    [ "$took" -lt 20 ] || fail "$name: took $took s"
    [ ! -e "$tmp/$name" ] || fail "$name: left $tmp/$name behind"
}

# same NAME1 NAME2 TOLERANCE: see tests/compare_metrics.
same() {
    perl tests/compare_metrics "$3" "$tmp/$1/metrics.jsonl" "$tmp/$2/metrics.jsonl" ||
        fail "$2 differs from $1"
}
