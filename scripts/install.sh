#!/bin/sh
# install.sh - installs, on Debian and its descendants, the packages that are still missing; needs
# root or sudo only then. Anywhere else it prints what dsv3 needs and stops with exit code 69.
#
# usage: sh scripts/install.sh [tests]     tests: also what single tests want, as root
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

needed='build-essential libopenmpi-dev openmpi-bin libyaml-dev libzstd-dev zstd zlib1g-dev
libjansson-dev libxxhash-dev libhdf5-dev perl'
wanted='bible-kjv bible-kjv-text' # the demo's text; a sample lies in data/ for those who lack it
if [ "${1:-}" = tests ]; then
    wanted="$wanted slurm-wlm munge" # a batch system on one machine; without it its tests skip
fi

# The packages among "$@" that are not installed.
missing_of() {
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :) in
        installed) ;;
        *) printf '%s ' "$package" ;;
        esac
    done
}

stop() {
    echo "$1" >&2
    echo "dsv3 needs these packages (names of Debian 12):" >&2
    echo "$needed" | sed 's/^/    /' >&2
    exit 69
}

command -v apt-get >/dev/null 2>&1 && command -v dpkg-query >/dev/null 2>&1 ||
    stop 'This is not Debian or a descendant of it (no apt-get): please install by hand.'

# shellcheck disable=SC2086
missing=$(missing_of $needed) optional=$(missing_of $wanted)
[ -n "$missing$optional" ] || { echo 'packages: all installed' && exit 0; }

as_root=
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1; then
        as_root=sudo
    elif [ -n "$missing" ]; then
        stop "Not root, and no sudo here. Please have these installed: $missing"
    else
        echo "packages: $optional not installed (optional; neither root nor sudo)"
        exit 0
    fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH="$PATH" \
        apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" </dev/null >"$log" 2>&1
}

updated=no
update() {
    [ $updated = yes ] || apt update || { cat "$log" >&2 && return 1; }
    updated=yes
}
if [ -n "$missing" ]; then
    echo "packages: installing $missing(a minute or two)"
    update || stop "apt-get update failed."
    # shellcheck disable=SC2086
    apt install --no-install-recommends $missing || { cat "$log" >&2 && stop "apt-get failed."; }
fi
if [ -n "$optional" ]; then
    echo "packages: installing $optional"
    # shellcheck disable=SC2086
    update && apt install --no-install-recommends $optional ||
        echo "packages: $optional could not be installed (data/ has a sample of the text)"
fi
