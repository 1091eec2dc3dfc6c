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
# $tmp/NAME.out, what went to standard error also in $tmp/NAME.err; the exit code is the program's.
train() {
    name=$1
    np=$2
    shift 2
    code=0
    timeout $((120 * ${DSV3_TIMEOUT_SCALE:-1})) \
        mpirun -np "$np" "$dsv3" train "$tmp/run.yaml" \
        "run.dir=$tmp/$name" "$@" \
        </dev/null >"$tmp/$name.out" 2>"$tmp/$name.err" || code=$?
    cat "$tmp/$name.err" >>"$tmp/$name.out"
    return $code
}

must_train() {
    train "$@" || {
        cat "$tmp/$1.out" >&2
        fail "training $* ended with exit code $code"
    }
}

# fails CODE WORDS NAME RANKS [section.key=value ...]: the run ends in time with this exit code and
# one line that matches, and leaves no process behind.
fails() {
    want=$1 words=$2 name=$3
    shift 2
    code=0 begin=$(date +%s)
    train "$@" || code=$?
    took=$(($(date +%s) - begin))
    said=$(cat "$tmp/$name.err")
    [ $code = "$want" ] || fail "$name: exit code $code, expected $want: $said"
    echo "$said" | grep -q -e "$words" || fail "$name: '$words' is not in: $said"
    [ "$(echo "$said" | wc -l)" = 1 ] || fail "$name: more than one line: $said"
    [ "$took" -lt $((30 * ${DSV3_TIMEOUT_SCALE:-1})) ] || fail "$name: took $took s"
    nothing_left "$name"
}

# refused: the same, and nothing is written.
refused() {
    fails "$@"
    [ ! -e "$tmp/$3" ] || fail "$3: left $tmp/$3 behind"
}

# later COMMAND ...: start it beside three others, which mostly wait; finish waits for all of them
# and ends the test when one has failed.
started=
later() {
    "$@" &
    started="$started $!"
    [ "$(echo $started | wc -w)" -lt 4 ] || finish
}
finish() {
    for pid in $started; do wait "$pid" || exit 1; done
    started=
}

# nothing_left NAME: no process of that run is there; mpirun does not wait for the last to be gone.
nothing_left() {
    echo "run.dir=$tmp/$1" >"$tmp/$1.pattern" # not in this command's own arguments
    for _ in 1 2 3 4 5; do
        left=$(grep -laF -f "$tmp/$1.pattern" /proc/[0-9]*/cmdline 2>/dev/null) || return 0
        sleep 1
    done
    fail "$1: still there: $left"
}

# same NAME1 NAME2 TOLERANCE: see tests/compare_metrics.
same() {
    perl tests/compare_metrics "$3" "$tmp/$1/metrics.jsonl" "$tmp/$2/metrics.jsonl" ||
        fail "$2 differs from $1"
}

# $tmp/agent, for mpirun's plm_rsh_agent, in place of ssh: the other machine is this one, with a
# place of its own for shared memory.
make_agent() {
    cat >"$tmp/agent" <<'SH'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
export TMPDIR="${0%/*}/$1"
export OMPI_MCA_btl_vader_backing_directory="$TMPDIR"
shift
mkdir -p "$TMPDIR"
exec sh -c "$*"
SH
    chmod +x "$tmp/agent"
}
