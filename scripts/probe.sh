#!/bin/sh
# probe.sh - what this machine can build: the first thing the Makefile runs. Tries each library by
# compiling, linking and running a few lines (pkg-config may be absent), then writes
#   BUILD/probe/libs.txt   one line per library, found or missing, for the eyes
#   BUILD/probe/libs.mk    compiler flags for make
# and, when something that dsv3 cannot do without is missing, prints what to install and returns 1.
# What was found once is not tried again (make clean forgets it).
#
# usage: sh scripts/probe.sh BUILD CC ARCH
set -eu
export LC_ALL=C

dir=$1/probe cc=$2 arch=$3
mkdir -p "$dir"
txt=$dir/libs.txt.$$ mk=$dir/libs.mk.$$
trap 'rm -f "$txt" "$mk"' EXIT
: >"$txt"
: >"$mk"
missing=

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
        $cc -o "$dir/$1" "$dir/$1.c" $2 >"$dir/$1.log" 2>&1 || return 1
        (ulimit -c 0 && "$dir/$1") >"$dir/$1.out" 2>/dev/null || echo present >"$dir/$1.out"
        head -n 1 "$dir/$1.out" >"$dir/$1.ok"
    fi
    version=$(cat "$dir/$1.ok")
}

# need TITLE PACKAGE NAME FLAGS HEADER FORMAT ARGUMENTS: one line; a miss stops the build.
need() {
    title=$1 package=$2
    shift 2
    if try "$@"; then
        say found "$title" "$version"
    else
        say missing "$title" "Debian package $package"
        missing="$missing $package"
    fi
}

# The compiler comes first: without it every library would look missing.
if ! command -v "${cc%% *}" >/dev/null 2>&1; then
    say missing MPI "Debian packages libopenmpi-dev openmpi-bin ($cc is not in PATH)"
    missing="$missing libopenmpi-dev openmpi-bin"
    cc=gcc
fi
if ! try cc '' '' '%d.%d' '__GNUC__, __GNUC_MINOR__'; then
    say missing compiler "Debian package build-essential"
    echo "missing: a C compiler. On Debian: apt-get install build-essential$missing," \
        "or sh scripts/install.sh"
    exit 1
fi
say found compiler "gcc $version"

case $missing in
*openmpi*) ;;
*) need MPI libopenmpi-dev mpi '' '#include <mpi.h>
static char name[MPI_MAX_LIBRARY_VERSION_STRING];
static int n;' %.15s '(MPI_Get_library_version(name, &n), name)' ;;
esac
need OpenMP build-essential omp -fopenmp '#include <omp.h>' '%d, %d threads here' \
    '_OPENMP, omp_get_max_threads()'
need libyaml libyaml-dev yaml -lyaml '#include <yaml.h>' %s 'yaml_get_version_string()'
need zstd libzstd-dev zstd -lzstd '#include <zstd.h>' %s 'ZSTD_versionString()'
need zlib zlib1g-dev z -lz '#include <zlib.h>' %s 'zlibVersion()'
need Jansson libjansson-dev jansson -ljansson '#include <jansson.h>' %s \
    '(json_decref(json_object()), JANSSON_VERSION)'
need xxHash libxxhash-dev xxhash -lxxhash '#include <xxhash.h>' %u 'XXH_versionNumber()'

# Debian keeps HDF5's serial build, the one that is needed, apart.
hdf5=no
for flags in "$(pkg-config --cflags --libs hdf5-serial 2>/dev/null || :)" \
    '-I/usr/include/hdf5/serial -lhdf5_serial' '-lhdf5'; do
    [ -n "$flags" ] || continue
    if [ -s "$dir/hdf5.flags" ]; then flags=$(cat "$dir/hdf5.flags"); fi
    if try hdf5 "$flags" '#include <hdf5.h>' %s '(H5open(), H5_VERS_INFO)'; then
        hdf5=yes
        echo "$flags" >"$dir/hdf5.flags"
        break
    fi
done
if [ $hdf5 = yes ]; then
    say found HDF5 "${version#HDF5 library version: }"
    echo "HDF5_FLAGS := $flags" >>"$mk"
else
    say missing HDF5 "Debian package libhdf5-dev"
    missing="$missing libhdf5-dev"
fi
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || :)
if [ -n "$nvcc" ]; then
    say found CUDA "$nvcc (not used yet: this program trains on CPUs)"
else
    say missing CUDA "nvcc not found (not used yet: this program trains on CPUs)"
fi

# Flags that only some compilers or processors know.
for flag in "-march=$arch" "-mcpu=$arch" -mprefer-vector-width=512; do
    case $flag in -mcpu=*) grep -q march "$mk" && continue ;; esac
    name=flag$(echo "$flag" | tr -c 'A-Za-z0-9' _)
    if try "$name" "$flag -Werror" '' %d 1; then echo "MACHINE += $flag" >>"$mk"; fi
done

for f in txt mk; do
    eval "new=\$$f"
    cmp -s "$new" "$dir/libs.$f" 2>/dev/null || cp "$new" "$dir/libs.$f"
done
if [ -n "$missing" ]; then
    echo "missing libraries. On Debian: apt-get install$missing, or sh scripts/install.sh"
    exit 1
fi
