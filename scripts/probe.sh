#!/bin/sh
# probe.sh - what this machine can build: the first thing the Makefile runs. Tries each library by
# compiling, linking and running a few lines, with what pkg-config says of it and then with what is
# usual, always beside CPPFLAGS and LDFLAGS of the caller; then writes
#   BUILD/probe/libs.txt   one line per library, found or missing, for the eyes
#   BUILD/probe/libs.mk    flags for make
# and, when something that dsv3 cannot do without is missing, prints what to install and returns 1.
# What was found once is not tried again (make clean forgets it, other settings do as well).
#
# usage: [CPPFLAGS= LDFLAGS= PKG_CONFIG= PKG_CONFIG_PATH=] sh scripts/probe.sh BUILD CC ARCH
set -eu
export LC_ALL=C

dir=$1/probe cc=$2 arch=$3 cppflags=${CPPFLAGS:-} ldflags=${LDFLAGS:-}
mkdir -p "$dir"
txt=$dir/libs.txt.$$ mk=$dir/libs.mk.$$
trap 'rm -f "$txt" "$mk"' EXIT
: >"$txt"
: >"$mk"
missing=

settings="$cc|$arch|$cppflags|$ldflags|${PKG_CONFIG:-}|${PKG_CONFIG_PATH:-}"
if [ "$(cat "$dir/settings" 2>/dev/null)" != "$settings" ]; then
    rm -f "$dir"/*.ok
    echo "$settings" >"$dir/settings"
fi

say() { # state name remark
    printf '  %-8s %-9s %s\n' "$1" "$2" "$3" >>"$txt"
}

# try NAME FLAGS HEADER FORMAT ARGUMENTS: does a program that prints its library's version build?
# 'ulimit -c 0': a program that cannot run here (other CPU) must not leave a core file.
try() {
    if [ ! -s "$dir/$1.ok" ]; then
        printf '#include <stdio.h>\n%s\nint main(void) { printf("%s\\n", %s); return 0; }\n' \
            "$3" "$4" "$5" >"$dir/$1.c"
        # shellcheck disable=SC2086
        $cc $cppflags -o "$dir/$1" "$dir/$1.c" $ldflags $2 >"$dir/$1.log" 2>&1 </dev/null ||
            return 1
        (ulimit -c 0 && "$dir/$1") >"$dir/$1.out" 2>/dev/null || echo present >"$dir/$1.out"
        head -n 1 "$dir/$1.out" >"$dir/$1.ok"
        echo "$2" >"$dir/$1.flags"
    fi
    version=$(cat "$dir/$1.ok")
}

# ways [MODULE | FLAGS] ...: what pkg-config knows of the modules, and the flags, a line each
ways() {
    for way in "$@"; do
        case $way in
        -*) echo "$way" ;;
        *) ${PKG_CONFIG:-pkg-config} --cflags --libs "$way" 2>/dev/null || : ;;
        esac
    done
}

# need TITLE PACKAGE NAME WAYS HEADER FORMAT ARGUMENTS: one line, and the flags for make of the
# first way that builds; a miss stops the build.
need() {
    title=$1 package=$2 name=$3 ways=$4
    shift 4
    while read -r flags; do
        try "$name" "$flags" "$@" || continue
        say found "$title" "${version#HDF5 library version: }"
        for flag in $(cat "$dir/$name.flags"); do
            case $flag in
            -[lL]* | -Wl,*) echo "LIBS += $flag" ;;
            *) echo "LIB_FLAGS += $flag" ;;
            esac
        done >>"$mk"
        return 0
    done <<END
$ways
END
    say missing "$title" "Debian package $package; what the compiler says: $dir/$name.log"
    missing="$missing $package"
}

# The compiler comes first: without it every library would look missing.
if ! command -v "${cc%% *}" >/dev/null 2>&1; then
    say missing MPI "Debian packages libopenmpi-dev openmpi-bin ($cc is not in PATH)"
    missing="$missing libopenmpi-dev openmpi-bin"
    cc=gcc
fi
if ! try cc '' '#ifdef __clang__
#define NAME ""
#else
#define NAME "gcc "
#endif' %s 'NAME __VERSION__'; then
    say missing compiler "Debian package build-essential; what it says: $dir/cc.log"
    echo "missing: a C compiler. On Debian: apt-get install build-essential$missing," \
        "or sh scripts/install.sh"
    exit 1
fi
say found compiler "$version"
omp=build-essential
case $version in *lang*) omp=libomp-dev ;; esac

case $missing in
*openmpi*) ;;
*) need MPI libopenmpi-dev mpi '' '#include <mpi.h>
static char name[MPI_MAX_LIBRARY_VERSION_STRING];
static int n;' %.15s '(MPI_Get_library_version(name, &n), name)' ;;
esac
case $version in MPICH*) mpi=mpich ;; *) mpi=openmpi ;; esac
need OpenMP $omp omp -fopenmp '#include <omp.h>' '%d, %d threads here' \
    '_OPENMP, omp_get_max_threads()'
need libyaml libyaml-dev yaml "$(ways yaml-0.1 -lyaml)" '#include <yaml.h>' %s \
    'yaml_get_version_string()'
need zstd libzstd-dev zstd "$(ways libzstd -lzstd)" '#include <zstd.h>' %s 'ZSTD_versionString()'
need zlib zlib1g-dev z "$(ways zlib -lz)" '#include <zlib.h>' %s 'zlibVersion()'
need Jansson libjansson-dev jansson "$(ways jansson -ljansson)" '#include <jansson.h>' %s \
    '(json_decref(json_object()), JANSSON_VERSION)'
need xxHash libxxhash-dev xxhash "$(ways libxxhash -lxxhash)" '#include <xxhash.h>' %u \
    'XXH_versionNumber()'
# The serial build is all that is needed, but one for the same MPI does as well; Debian keeps them
# apart.
need HDF5 libhdf5-dev hdf5 "$(ways hdf5-serial hdf5 hdf5-$mpi -lhdf5 \
    '-I/usr/include/hdf5/serial -lhdf5_serial' "-I/usr/include/hdf5/$mpi -lhdf5_$mpi")" \
    '#include <hdf5.h>' %s '(H5open(), H5_VERS_INFO)'
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || :)
if [ -n "$nvcc" ]; then
    say found CUDA "$nvcc (not used yet: this program trains on CPUs)"
else
    say missing CUDA "nvcc not found (not used yet: this program trains on CPUs)"
fi

# Flags that only some compilers or processors know; without one of the first two the kernels would
# be many times slower.
for flag in "-march=$arch" "-mcpu=$arch" -mprefer-vector-width=512; do
    case $flag in -mcpu=*) grep -q march "$mk" && continue ;; esac
    name=flag$(echo "$flag" | tr -c 'A-Za-z0-9' _)
    if try "$name" "$flag -Werror" '' %d 1; then echo "MACHINE += $flag" >>"$mk"; fi
done
if ! grep -q 'MACHINE += -m[ac][rp][cu]' "$mk"; then
    echo "ARCH=$arch: this compiler knows neither -march=$arch nor -mcpu=$arch"
    exit 1
fi

# gcc 12 for aarch64 breaks down over the largest double of a loop.
machine=$(sed -n 's/^MACHINE += //p' "$mk" | tr '\n' ' ')
try fmax "-O3 $machine -fno-trapping-math -fno-math-errno -lm" \
    '#include <math.h>
double largest(const float *x, int n)
{
    double m = 0;
    for (int i = 0; i < n; i++) m = fmax(m, x[i]);
    return m;
}' %d 1 || echo 'MACHINE += -fno-builtin-fmax' >>"$mk"

for f in txt mk; do
    eval "new=\$$f"
    cmp -s "$new" "$dir/libs.$f" 2>/dev/null || cp "$new" "$dir/libs.$f"
done
if [ -n "$missing" ]; then
    echo "missing libraries. On Debian: apt-get install$missing, or sh scripts/install.sh;" \
        "elsewhere see docs/build.md"
    exit 1
fi
