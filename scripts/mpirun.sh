#!/bin/sh
# mpirun.sh - trains on this machine, or on those of a hostfile, where there is no Slurm: one rank
# a core, or as many as -n or the hostfile say, each bound to its share of the cores.
#
# usage: sh scripts/mpirun.sh [-n RANKS] [-f HOSTFILE] [-t THREADS] RUN.yaml [section.key=value ...]
#    -t    cores a rank; default: those of this machine / the ranks on it
#
# SIGTERM, SIGINT (Ctrl-C) and SIGUSR1 make the run save and end with exit code 75, "start me
# again"; a second SIGTERM or SIGINT ends it at once. mpirun by itself would give the ranks one
# second. More of mpirun's options: in MPIRUN_OPTIONS.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/env.sh"
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac

usage() {
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 64
}
ranks= hostfile= threads=
while getopts n:f:t: option; do
    case $option in
    n) ranks=$OPTARG ;;
    f) hostfile=$OPTARG ;;
    t) threads=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage

# Cores that this process may use, each once however many hardware threads it has; 0: unknown.
cores=$(lscpu -p=CPU,CORE,SOCKET 2>/dev/null | awk -F , -v mask="$(taskset -cp $$ 2>/dev/null)" '
    BEGIN {
        n = split(substr(mask, index(mask, ": ") + 2), range, ",")
        for (i = 1; i <= n; i++) {
            m = split(range[i], ends, "-")
            for (c = ends[1] + 0; c <= ends[m] + 0; c++) mine[c] = 1
        }
    }
    !/^#/ && ($1 in mine) { core[$2, $3] = 1 }
    END { for (c in core) all++; print all + 0 }')
if [ -n "$hostfile" ]; then
    here=$(sed -n 's/^[^#]*slots=\([0-9]*\).*/\1/p' "$hostfile" | head -n 1)
    [ -n "$here" ] || { echo "$hostfile: no line HOST slots=RANKS" >&2 && exit 64; }
else
    ranks=${ranks:-$([ "$cores" -gt 0 ] && echo "$cores" || nproc)}
    here=$ranks
fi
[ -n "$threads" ] || threads=$((cores / here))

# With fewer cores than ranks, binding would only keep the system from sharing them fairly.
bind=
if [ "$threads" -ge 1 ]; then
    bind="--map-by slot:PE=$threads --bind-to core"
    unset OMPI_MCA_rmaps_base_oversubscribe PRTE_MCA_rmaps_default_mapping_policy
fi

# In a process group of its own, or Ctrl-C would reach mpirun as well.
# shellcheck disable=SC2086
perl -e 'setpgrp; exec @ARGV or die "$ARGV[0]: $!\n"' \
    mpirun $bind ${ranks:+-np "$ranks"} ${hostfile:+--hostfile "$hostfile"} \
    ${MPIRUN_OPTIONS:-} "$BUILD/dsv3" train "$@" </dev/null &
mpirun=$!
asked=
stop() {
    if [ -z "$asked" ] || [ "$1" = USR1 ]; then kill -USR1 $mpirun; else kill -TERM $mpirun; fi
    [ "$1" = USR1 ] || asked=yes
}
for signal in USR1 TERM INT; do
    # shellcheck disable=SC2064
    trap "stop $signal" $signal
done
code=0
while kill -0 $mpirun 2>/dev/null; do
    code=0
    wait $mpirun || code=$?
done
exit $code
