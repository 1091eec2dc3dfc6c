#!/bin/sh
# manpage.sh - prints the manual page of a program, made from what its --help and, where it has
# commands with a --help of their own, theirs say.
#
# usage: sh scripts/manpage.sh PROGRAM
set -eu
program=$1 name=${1##*/}
version=$("$program" --version | sed -n '1s/^[^ ]* //p')

# Text as roff: paragraphs as they are, "Title:" as a heading of kind $1.
roff() {
    awk -v heading="$1" '
        /^[A-Z][A-Za-z ]*:$/ {
            print ".fi\n" heading " " toupper(substr($0, 1, length - 1)) "\n.nf"
            next
        }
        { gsub(/\\/, "\\e"); gsub(/-/, "\\-"); sub(/^[.\047]/, "\\\\\\&&"); print }'
}

help=$("$program" --help)
body=$(echo "$help" | sed '1,/^$/d')
what=$(echo "$body" | sed '/^$/,$d' | tr '\n' ' ' | sed 's/[.:] .*//; s/[. ]*$//')
printf '.TH %s 1 "" "dsv3 %s"\n' "$(echo "$name" | tr a-z A-Z)" "$version"
printf '.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n' "$name" "${what#"$name" }"
echo "$help" | sed '/^$/,$d; s/^usage: //; s/^       //' | roff .SH
printf '.fi\n.SH DESCRIPTION\n.nf\n'
echo "$body" | roff .SH
for command in $(echo "$help" | sed -n '/^Commands:$/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    printf '.fi\n.SH %s %s\n.nf\n' "$(echo "$name" | tr a-z A-Z)" "$(echo "$command" | tr a-z A-Z)"
    "$program" "$command" --help | roff .SS
done
echo .fi
