#!/bin/sh
# test.sh - installs what is missing, builds, runs the tests (but those of tests/run --long), and a
# part of them once more in a build with the address and undefined-behaviour sanitizers; the last
# line counts all.
#
# usage: sh scripts/test.sh [PART-OF-A-TEST'S-NAME ...]
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

sh scripts/install.sh tests
$MAKE programs
$MAKE SAN=1 BUILD="$BUILD-san" programs
DSV3_BUILD=$BUILD DSV3_BUILD_SAN=$BUILD-san tests/run "$@"
