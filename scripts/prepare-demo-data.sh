#!/bin/sh
# prepare-demo-data.sh - the text of the demo as token shards: train.tok.zst and heldout.tok.zst.
#
# The King James Bible when the command `bible` is there (Debian packages bible-kjv and
# bible-kjv-text), otherwise data/moby_dick.txt.zst. Chapters are documents; the last fortieth is
# held out. Does nothing when the shards are newer than the text, the tokenizer and this script.
# The last line of output is the bigram entropy.
#
# usage: sh scripts/prepare-demo-data.sh [--sample] [DIRECTORY]
#            --sample    the sample, whatever is installed        DIRECTORY    data/demo
#        DSV3_BUILD is where dsv3-tokenize lies (build)
set -eu
cd "$(dirname "$0")/.."

sample=no
if [ "${1:-}" = --sample ]; then
    sample=yes
    shift
fi
out=${1:-data/demo} build=${DSV3_BUILD:-build}
train=$out/train.tok.zst heldout=$out/heldout.tok.zst made_from=$out/made-from.txt
cut='--8<--' # a line that neither text has
PATH=$PATH:/usr/games

if [ $sample = no ] && command -v bible >/dev/null && [ -e /usr/lib/bible.data ]; then
    name='the King James Bible' text=/usr/lib/bible.data
else
    name='Moby-Dick (data/moby_dick.txt.zst)' text=data/moby_dick.txt.zst
fi

# The whole text, with a line $cut between chapters. Verses begin with their place: "Ge1:1 In the".
print_text() {
    if [ "$text" = /usr/lib/bible.data ]; then
        bible -f 'gen1:1-rev22:21' | awk -v cut="$cut" '
            { chapter = $1; sub(/:.*/, "", chapter) }
            NR > 1 && chapter != before { print cut }
            { print; before = chapter }'
    else
        zstd -dc "$text" | awk -v cut="$cut" '/^CHAPTER [0-9]/ && NR > 1 { print cut } { print }'
    fi
}

is_current() {
    [ -e "$train" ] && [ -e "$heldout" ] && [ "$(cat "$made_from" 2>/dev/null)" = "$name" ] ||
        return 1
    for source in "$text" "$build/dsv3-tokenize" "$0"; do
        [ -z "$(find "$source" -newer "$heldout")" ] || return 1
    done
}

if is_current; then
    echo "demo data: $name, prepared before"
else
    echo "demo data: $name"
    [ -x "$build/dsv3-tokenize" ] || { echo "no $build/dsv3-tokenize: run make" >&2; exit 1; }
    mkdir -p "$out"
    rm -f "$made_from"
    trap 'rm -f "$out/text.tmp"' EXIT
    print_text >"$out/text.tmp" # not piped: a failing left side of a pipe goes unnoticed in sh
    "$build/dsv3-tokenize" --force --separator "$cut" --out "$train" --heldout "$heldout" \
        --heldout-fraction 0.025 <"$out/text.tmp"
    echo "$name" >"$made_from"
fi
"$build/dsv3-bigram" "$train" "$heldout"
