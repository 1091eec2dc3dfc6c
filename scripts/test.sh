#!/bin/sh
# test.sh - installs what is missing, builds, runs every test; the last line counts them.
#
# usage: sh scripts/test.sh [PART-OF-A-TEST'S-NAME ...]
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh

sh scripts/install.sh
$MAKE programs
DSV3_BUILD=$BUILD tests/run "$@"
