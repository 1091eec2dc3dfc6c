# The Makefile: ARCH wins over -march of CFLAGS and says so, an ARCH that the compiler does not know
#TEST timeout=100
# is an error; install and uninstall leave what they should; pages and completion are made from the
# help and the keys; an archive knows its commit.
. tests/lib_test.sh
export MAKEFLAGS=
unset CFLAGS CPPFLAGS LDFLAGS CC PKG_CONFIG_PATH
# What was probed for the build under test, for another that has its settings.
build=${tmp#"$PWD"/}/build # as the Makefile spells it
mkdir -p "$build"
cp -R "$DSV3_BUILD/probe" "$build"
IFS='|' read -r cc arch _ <"$build/probe/settings"
mk() { make BUILD="$build" CC="$cc" ARCH="$arch" "$@"; }

line=$(CFLAGS='-O2 -march=nocona' mk -n V=1 "$build/src/base/arena.o" | grep -e '-c -o')
case $line in
*-O3*-O2*-march=nocona*-march="$arch"*) ;;
*) fail "ARCH does not come last: $line" ;;
esac
CFLAGS='-march=nocona' mk -n all | grep -q -e "-march=nocona of CFLAGS gives way to ARCH=$arch" ||
    fail 'no word of a -march that does not hold'
line=$(mk -n V=1 LDFLAGS=-L/opt/none CPPFLAGS=-I/opt/first "$build/dsv3" | tail -n 1)
case $line in
*-I/opt/first*-L/opt/none*-Wl,-rpath,/opt/none*) ;;
*) fail "CPPFLAGS and LDFLAGS: $line" ;;
esac
mk -n ARCH=z80 all >"$tmp/z80" 2>&1 && fail 'ARCH=z80 was accepted'
grep -q 'ARCH=z80: this compiler knows neither -march=z80 nor -mcpu=z80' "$tmp/z80" ||
    fail "ARCH=z80: $(cat "$tmp/z80")"
mk -n CPPFLAGS=-nostdinc all >"$tmp/none" 2>&1 && fail 'built without any header'
grep -q 'missing a C compiler\|missing: a C compiler' "$tmp/none" || fail "$(cat "$tmp/none")"

# Installed from what is built; '-o all' takes the programs as they are.
mki() { make -s BUILD="$DSV3_BUILD" -o all DESTDIR="$tmp/dest" PREFIX=/usr "$@" >/dev/null; }
mki install
for file in bin/dsv3 bin/dsv3-ckpt bin/dsv3-tokenize bin/dsv3-bigram share/man/man1/dsv3.1 \
    share/man/man1/dsv3-ckpt.1 share/man/man1/dsv3-tokenize.1 share/doc/dsv3/docs/build.md \
    share/doc/dsv3/configs/runs/demo.yaml share/bash-completion/completions/dsv3-ckpt; do
    [ -s "$tmp/dest/usr/$file" ] || fail "not installed: $file"
done
"$tmp/dest/usr/bin/dsv3" check "$tmp/dest/usr/share/doc/dsv3/configs/runs/demo.yaml" >/dev/null ||
    fail 'the installed program cannot read the installed configuration'
grep -q '^dsv3 \\- pretrains' "$tmp/dest/usr/share/man/man1/dsv3.1" || fail 'dsv3.1: no name'
grep -q '^.SH DSV3 TRAIN' "$tmp/dest/usr/share/man/man1/dsv3.1" || fail 'dsv3.1: no train'
! grep -n "^[.'][^TSfn]" "$tmp"/dest/usr/share/man/man1/* || fail 'text taken for requests'
if command -v bash >/dev/null; then
    # complete WORD ...: what bash proposes for the last of them
    complete() {
        bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            compopt() { :; }; _dsv3; echo ${COMPREPLY[*]}' bash \
            "$tmp/dest/usr/share/bash-completion/completions/dsv3" "$@"
    }
    [ "$(complete dsv3 tr)" = train ] || fail "dsv3 tr: $(complete dsv3 tr)"
    [ "$(complete dsv3 train optimizer.weight_)" = optimizer.weight_decay= ] || fail 'no keys'
    [ "$(complete dsv3 train run.backend = c)" = 'cpu cuda' ] || fail 'no values'
    [ "$(complete dsv3 plan --ra)" = --ranks ] || fail "plan --ra: $(complete dsv3 plan --ra)"
fi
mki uninstall
[ -z "$(find "$tmp/dest" ! -type d)" ] || fail "left: $(find "$tmp/dest" ! -type d)"

if git rev-parse HEAD >/dev/null 2>&1 && git cat-file -e HEAD:.version 2>/dev/null; then
    mkdir "$tmp/archive"
    git archive HEAD Makefile .version .gitattributes | tar xf - -C "$tmp/archive"
    commit=$(make -pn -C "$tmp/archive" clean | sed -n 's/^VERSION := //p')
    git rev-parse HEAD | grep -q "^$commit" || fail "the archive says '$commit'"
fi
