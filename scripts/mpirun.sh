#!/bin/sh
# mpirun.sh - trains on this machine, or on those of a hostfile, where there is no Slurm: one rank
# a core, or as many as -n or the hostfile say, each bound to its share of the cores.
#
# usage: sh scripts/mpirun.sh [-n RANKS] [-f HOSTFILE] [-t THREADS] RUN.yaml [section.key=value ...]
#    -t    cores a rank; default: those of this machine / the ranks on it
#
# SIGTERM, SIGINT (Ctrl-C), SIGHUP (the terminal is closed) and SIGUSR1 make the run save and end
# with exit code 75, "start me again"; a second SIGTERM or SIGINT ends it at once. mpirun by itself
# would give the ranks one second. When the ranks of this machine have ended and mpirun has not
# within DSV3_PATIENCE_S (60) seconds, as it waits for a machine that does not answer, it is ended
# and the exit code is 70. More of mpirun's options: in MPIRUN_OPTIONS.
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

# In a process group of its own, or Ctrl-C would reach mpirun as well; the ranks are told who is
# asked to stop.
export DSV3_STOPS_BY_USR1=1
# shellcheck disable=SC2086
perl -e 'setpgrp; exec @ARGV or die "$ARGV[0]: $!\n"' \
    mpirun $bind ${ranks:+-np "$ranks"} ${hostfile:+--hostfile "$hostfile"} \
    ${MPIRUN_OPTIONS:-} "$BUILD/dsv3" train "$@" </dev/null &
mpirun=$!

# The ranks among mpirun's children on this machine.
has_ranks() {
    for pid in $(cat "/proc/$mpirun/task/$mpirun/children" 2>/dev/null); do
        [ ! "/proc/$pid/exe" -ef "$BUILD/dsv3" ] || return 0
    done
    return 1
}
watch() {
    seen= without=0
    while sleep 1 && kill -0 $mpirun 2>/dev/null; do
        if has_ranks; then seen=yes without=0; else without=$((without + 1)); fi
        [ -n "$seen" ] && [ $without -ge "${DSV3_PATIENCE_S:-60}" ] || continue
        echo "mpirun.sh: the ranks of this machine ended $without s ago, mpirun has not:" \
            "is there a machine that does not answer? mpirun is killed" >&2
        : >"$1"
        kill -KILL $mpirun
    done
}
stuck=$(mktemp -u)
watch "$stuck" &
watcher=$!
trap 'kill $watcher 2>/dev/null; rm -f "$stuck"' EXIT

asked=
stop() {
    if [ -z "$asked" ] || [ "$1" = USR1 ] || [ "$1" = HUP ]; then
        echo "mpirun.sh: SIG$1: the run saves at the end of its step and stops" >&2 || :
        kill -USR1 $mpirun
    else
        kill -TERM $mpirun
    fi
    case $1 in TERM | INT) asked=yes ;; esac
}
for signal in USR1 HUP TERM INT; do
    # shellcheck disable=SC2064
    trap "stop $signal" $signal
done
code=0
while kill -0 $mpirun 2>/dev/null; do
    code=0
    wait $mpirun || code=$?
done
[ ! -e "$stuck" ] || code=70
exit $code
