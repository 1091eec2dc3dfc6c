#!/bin/sh
# portability.sh - builds dsv3 with other MPIs, compilers, processors and systems than those of this
# machine, and runs unit tests and a short training with each. Needs minutes, and as root the
# system's package mirror: what is not to be had here is skipped with a line.
#
# usage: sh tests/portability.sh [PART ...]
#    mpich     MPICH instead of Open MPI
#    clang     clang instead of gcc
#    aarch64   cross build, unit tests by qemu
#    trixie    Debian 13 in a chroot: Open MPI 5, HDF5 1.14, gcc 14; installs, builds, trains
#    bookworm, noble     the same for Debian 12, Ubuntu 24.04 (only when named)
#    DSV3_PORTABILITY    a directory for what is built, kept for the next time (one of its own)
# The last line counts the parts: N passed, N failed, N skipped.
set -eu
cd "$(dirname "$0")/.."
. scripts/env.sh
root=$PWD
if [ -n "${DSV3_PORTABILITY:-}" ]; then
    mkdir -p "$DSV3_PORTABILITY"
    work=$(cd "$DSV3_PORTABILITY" && pwd)
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/dsv3-portability.XXXXXX")
    trap 'rm -rf --one-file-system "$work"' EXIT
fi
units='t_config t_kernels t_topo t_data_order t_data_reader t_data_shards t_ckpt_store t_optim'
ranks='t_comm t_model_golden t_train_repeat t_c05'

skip() {
    echo "skipped: $*"
    exit 77
}

# packages NAME ...: installs what is missing; without root or a mirror the part is skipped.
updated=$work/updated
packages() {
    absent=
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -q '^installed' ||
            absent="$absent $package"
    done
    [ -n "$absent" ] || return 0
    [ "$(id -u)" = 0 ] || skip "not root, and not installed:$absent"
    # shellcheck disable=SC2086
    { [ -e "$updated" ] || apt-get -q update && : >"$updated"; } &&
        DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $absent ||
        skip "could not be installed:$absent"
}

# build_and_test DIRECTORY TESTS [make's variables ...]
build_and_test() {
    build=$1 tests=$2
    shift 2
    $MAKE BUILD="$build" "$@" programs
    # shellcheck disable=SC2086
    DSV3_BUILD=$build tests/run $tests
}

part_mpich() {
    packages libmpich-dev mpich
    mkdir -p "$work/bin"
    printf '#!/bin/sh\nexec mpirun.mpich "$@"\n' >"$work/bin/mpirun"
    chmod +x "$work/bin/mpirun"
    PATH=$work/bin:$PATH
    build_and_test "$work/mpich" "$units $ranks" CC=mpicc.mpich WERROR=1
}

part_clang() {
    packages clang libomp-dev
    export OMPI_CC=clang
    build_and_test "$work/clang" "$units $ranks" WERROR=0 # its vectorizer warns of what gcc does
}

# debootstrap's first stage, or all of it: debootstrapped SUITE DIRECTORY [option ...]
debootstrapped() {
    suite=$1 into=$2
    shift 2
    [ ! -e "$into/complete" ] || return 0
    rm -rf --one-file-system "$into"
    debootstrap --variant=minbase --components=main,universe "$@" "$suite" "$into" &&
        : >"$into/complete" || skip "debootstrap $suite failed (no mirror?)"
}

# The packages of arm64 lie in a directory of their own, unpacked only.
part_aarch64() {
    packages gcc-aarch64-linux-gnu qemu-user-static debootstrap
    arm=$work/arm64 triple=aarch64-linux-gnu
    debootstrapped bookworm "$arm" --foreign --arch=arm64 --include=libopenmpi-dev,libyaml-dev,\
libzstd-dev,zlib1g-dev,libjansson-dev,libxxhash-dev,libhdf5-dev
    if [ ! -e "$arm/unpacked" ]; then
        for package in "$arm"/var/cache/apt/archives/*.deb; do dpkg -x "$package" "$arm"; done
        : >"$arm/unpacked"
    fi
    lib=$arm/usr/lib/$triple
    $MAKE BUILD="$work/aarch64" CC=$triple-gcc ARCH=armv8-a WERROR=1 PKG_CONFIG=true \
        CPPFLAGS="--sysroot=$arm -I$lib/openmpi/include -I$arm/usr/include/hdf5/serial" \
        LDFLAGS="--sysroot=$arm -L$lib -L$lib/openmpi/lib -lmpi" programs
    printf '#!/bin/sh\nexec qemu-aarch64-static -L %s -E LD_LIBRARY_PATH=%s "$@"\n' "$arm" \
        "$lib:$lib/hdf5/serial" >"$work/emulate"
    chmod +x "$work/emulate"
    DSV3_BUILD=$work/aarch64 DSV3_EMULATE=$work/emulate tests/run t_kernels_rmsnorm t_kernels_rope \
        t_kernels_router t_kernels_linear t_kernels_cross t_kernels_adamw t_kernels_swiglu \
        t_kernels_vexp t_config_values t_data_shards

    # The same training as here.
    $MAKE all
    export DSV3_BUILD="$root/$BUILD" DSV3_TEST_TMP="$work/training" OMP_NUM_THREADS=1
    case $BUILD in /*) DSV3_BUILD=$BUILD ;; esac
    rm -rf "$DSV3_TEST_TMP" && mkdir "$DSV3_TEST_TMP"
    . tests/lib_train.sh
    make_run
    must_train here 1 train.steps=4
    "$work/emulate" "$work/aarch64/dsv3" train "$tmp/run.yaml" run.dir="$tmp/there" train.steps=4
    same here there 1e-4
}

# system SUITE: everything from scratch in a system of its own.
system() {
    packages debootstrap
    [ "$(id -u)" = 0 ] || skip 'a chroot needs root'
    unshare --mount --pid --fork true 2>/dev/null || skip 'no namespaces here'
    there=$work/$1
    debootstrapped "$1" "$there"
    rm -rf "$there/dsv3"
    mkdir -p "$there/dsv3"
    tar cf - --exclude=data/demo Makefile .version configs data docs kernels scripts src tests \
        tools | tar xf - -C "$there/dsv3"
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --mount-proc="$there/proc" sh -c '
        mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" && mkdir -p "$1/dev/shm" &&
        shift && exec env -i "$@"' sh "$there" PATH="$PATH" HOME=/root OMPI_MCA_btl=self,vader,sm \
        chroot "$there" sh -c "cd /dsv3 || exit
            apt-get -q -o APT::Update::Error-Mode=any update ||
                { echo 'skipped: no package lists'; exit 77; }
            sh scripts/install.sh || exit
            . scripts/env.sh && make -j$CORES programs && tests/run $units $ranks &&
            sh scripts/demo.sh --no-install train.steps=24 train.eval_every=24"
}
part_trixie() { system trixie; }
part_bookworm() { system bookworm; }
part_noble() { system noble; }

passed=0 failed=0 skipped=0
for part in ${@:-mpich clang aarch64 trixie}; do
    begin=$(date +%s) code=0
    # Waited for, as left of || a function would go on behind its faults.
    "part_$part" >"$work/$part.log" 2>&1 </dev/null &
    wait $! || code=$?
    took="$part ($(($(date +%s) - begin)) s)"
    case $code in
    0) passed=$((passed + 1)) && echo "ok $took" ;;
    77)
        skipped=$((skipped + 1))
        why=$(sed -n 's/^skipped: //p' "$work/$part.log" | tail -n 1)
        echo "ok $took # SKIP $why"
        ;;
    *)
        failed=$((failed + 1))
        echo "not ok $took: exit code $code; the end of what it said:"
        tail -n 60 "$work/$part.log" | sed 's/^/#     /'
        ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
