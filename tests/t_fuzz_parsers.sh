# Nothing that a parser is fed ends it: a second of mutated input for each of tests/fuzz.
#TEST long=1 timeout=150
set -eu
echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
    clang -fsanitize=fuzzer,address -x c - -o "$DSV3_TEST_TMP/try" 2>/dev/null || {
    echo 'skipped: no clang with libFuzzer'
    exit 77
}
MAKEFLAGS='' make BUILD="$DSV3_BUILD" FUZZ_SECONDS=1 fuzz
