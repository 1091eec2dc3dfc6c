#!/bin/sh
#TEST timeout=60
# scripts/prepare-demo-data.sh makes the demo's shards once, from the sample as well as from the
# Bible where that is installed, and prints what it used and a plausible bigram entropy.
set -u
made=${DSV3_TEST_TMP:-} dir=${DSV3_TEST_TMP:-$(mktemp -d)}
n_failed=0
fail() {
    echo "$*"
    n_failed=$((n_failed + 1))
}

# prepare EXPECTED-NAME LOW HIGH [OPTION]
prepare() {
    said=$(sh scripts/prepare-demo-data.sh ${4:+"$4"} "$dir/demo" 2>/dev/null) || fail "$1: exit $?"
    echo "$said" | grep -q "$1" || fail "expected '$1' in: $said"
    echo "$said" | tail -n 1 | awk -v low="$2" -v high="$3" '{ exit !($1 > low && $1 < high) }' ||
        fail "expected an entropy between $2 and $3: $said"
}

# English text has 2.3 to 2.6 nats a byte by pairs.
prepare 'Moby-Dick.*zst' 2.3 2.6 --sample
before=$(ls -l --time-style=full-iso "$dir/demo")
prepare 'prepared before' 2.3 2.6 --sample
[ "$before" = "$(ls -l --time-style=full-iso "$dir/demo")" ] || fail 'made again'
if command -v bible >/dev/null; then prepare 'Bible' 2.35 2.45; fi
"$DSV3_BUILD/dsv3-tokenize" --verify "$dir"/demo/*.zst || fail 'the shards are not right'

[ -n "$made" ] || rm -rf "$dir"
[ $n_failed -eq 0 ]
