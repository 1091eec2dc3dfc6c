# lib_test.sh - what the shell tests share: where they write, the program, how they fail. Needs
# DSV3_BUILD and DSV3_TEST_TMP (tests/run).
set -eu

tmp=$DSV3_TEST_TMP
dsv3=$DSV3_BUILD/dsv3

fail() {
    echo "FAILED: $*" >&2
    exit 1
}
