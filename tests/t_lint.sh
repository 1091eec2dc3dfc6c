# The lint script finds nothing in this tree, and finds one planted violation of each of its rules.
#TEST timeout=120
set -eu
tmp=${DSV3_TEST_TMP:-$(mktemp -d)}
failed=0
fail() {
    echo "$1"
    failed=1
}

tools/lint || fail 'the tree is not clean'

# A copy to plant violations in; one file of it at a time.
copy=$tmp/copy
mkdir -p "$copy/docs"
tar cf - Makefile .clang-format src kernels tools tests/run tests/test.h scripts |
    tar xf - -C "$copy"
cd "$copy"

# plant FILE EXPECTED OPTION: the file's text comes from standard input; lint must name it.
plant() {
    mkdir -p "$(dirname "$1")"
    cat >"$1"
    if said=$(tools/lint $3 "$1"); then
        fail "not found: $2"
    elif ! echo "$said" | grep -q -e "$2"; then
        fail "expected '$2', but lint said: $said"
    fi
    rm -f "$1"
}
# code FILE EXPECTED LINE: a C file that has only this line beside its first comment.
code() { printf '/* planted */\n%s\n' "$3" | plant "$1" "$2" --fast; }
# repeat N TEXT: the text on N lines.
repeat() { awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) print text }'; }

code src/base/z.c 'src/base/ may not include src/topo/mesh.h' '#include "topo/mesh.h"'
code src/config/z.c 'may not include src/data/data.h' '#include "data/data.h"'
code src/optim/z.c 'may not include src/model/count.h' '#include "model/count.h"'
code kernels/cpu/z.c 'may not include src/config' '#include "config/config.h"'
code src/model/z.c 'is no file of this repository' '#include "model/zz.h"'
code tests/t_z.c 'includes a .c file' '#include "base/err.c"'
code src/model/z.c 'CUDA is not used here' '#include <cuda_runtime.h>'
code src/train/z.c 'CUDA is not used here' '#include <nccl.h>'
code src/base/z.c 'MPI is not used here' '#include <mpi.h>'
code src/data/z.c 'HDF5 is not used here' '#include <hdf5.h>'
code src/train/z.c 'libyaml is not used here' '#include <yaml.h>'
code kernels/cpu/z.c 'one processor is not used here' '#include <immintrin.h>'
code src/model/z.c 'extern in a .c file' 'extern int x;'
code src/model/z.c 'HAVE_CUDA is tested only' '#ifdef HAVE_CUDA'
code src/model/z.c 'typedef' 'typedef int thing;'
code src/model/z.c 'end the program' 'static void f(void) { exit(1); }'
code src/train/z.c 'a path that is cut' 'int n = snprintf(path, sizeof path, "%s/latest", root);'
code tools/ckpt/z.c 'a path that is cut' 'int n = snprintf(path, n, "%.4000s.tmp", root);'
code src/model/z.h 'header without #pragma once' 'int f(void);'
code tests/t_z.c 'is followed by .// TEST' 'int main(void) { return 0; } // TEST ranks=1'
code src/model/z.c "$(printf 'TO''DO') left" "$(printf '/* TO''DO: more */')"
code src/model/z.c '101 columns' "$(repeat 101 x | tr -d '\n')"
code src/model/z.c 'white space at the end' 'int x; '
echo 'int x;' | plant src/model/z.c 'does not begin with a comment' --fast
printf '/* planted */' | plant src/model/z.c 'no newline at the end' --fast
{ echo '/* planted */' && repeat 600 ''; } | plant src/model/z.c '601 lines, limit 600' --fast
{ echo '/* planted */' && repeat 120 ''; } | plant src/main.c '121 lines, limit 120' --fast
{ printf '/* planted */\n//TEST ranks=1\n' && repeat 149 ''; } |
    plant tests/t_z.c '151 lines, limit 150' --fast
long() { printf '/* planted */\n\n%sint f(void)\n{\n' "$1" && repeat 58 '' && echo '}'; }
long '' | plant src/model/z.c '3: function of 61 lines' --fast
printf '#!/bin/sh\nif\n' | plant scripts/z.sh 'sh -n' --fast
printf '#!/bin/sh\nmpirun --quiet true\n' | plant scripts/z.sh 'only Open MPI 4 has it' --fast
printf '#!/usr/bin/perl\nif\n' | plant tools/z 'perl -c' --fast
awk_prints() { # EXPECTED_TO_PASS ARGUMENTS: a shell script whose awk prints them
    printf "awk 'BEGIN {\n    printf %s }'\n" "$2" >scripts/z.sh
    said=$(tools/lint --fast scripts/z.sh) && ok=yes || ok=no
    [ $ok = "$1" ] || fail "print $2: expected passing: $1, but lint said: $said"
    [ $ok = yes ] || echo "$said" | grep -q 'z.sh:2: .*writes a file' || fail "lint said: $said"
    rm -f scripts/z.sh
}
awk_prints no '"%s\n", a, i > last ? "  <- here" : ""'
awk_prints no '"%s\n", f(a),
        i > $2'
awk_prints yes '"%d > %d\n", a, (i > f(last)) ? 1 : 2'
awk_prints yes '"a"; if (a > b) exit'
for name in '  <- here' 'a b' '-n' 'a*' "a'b"; do
    echo text >"docs/$name"
    said=$(tools/lint --fast) && fail "the name '$name' was not found"
    echo "$said" | grep -qF "docs/$name: a name has only" || fail "the name '$name': $said"
    rm -f "docs/$name"
done
printf '/* planted */\n#pragma once\nint64_t f(void);\n' |
    plant src/model/z.h 'does not compile alone' ''
if clang-format --version 2>/dev/null | grep -q 'version 14'; then
    printf '/* planted */\nint  x;\n' | plant src/model/z.c 'not formatted' ''
fi

# What must not be found: words in comments and strings, and a long function that says why.
long '/* whole: one table */
' >src/model/z.c
printf 'static const char *const x = "extern exit(1)"; /* typedef, HAVE_CUDA */\n' >>src/model/z.c
tools/lint --fast src/model/z.c >/dev/null || fail 'found something that is allowed'

# Warnings are errors, where they are asked to be.
printf '/* planted */\nstatic int unused;\n' >src/model/z.c
if MAKEFLAGS= make WERROR=1 BUILD="$tmp/build" "$tmp/build/src/model/z.o" >"$tmp/said" 2>&1; then
    fail 'an unused variable was compiled'
fi
grep -q 'Werror=unused-variable' "$tmp/said" || fail "no word of the warning: $(cat "$tmp/said")"
exit $failed
