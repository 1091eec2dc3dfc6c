# lib_stop.sh - for tests of signals (". tests/lib_stop.sh" after lib_train.sh): runs in the
# background, of which one rank stops itself at a given place (debug.fault), so that what happens
# there does not depend on how fast the machine is.

# begin NAME RANKS PLACE [section.key=value ...]: rank 1 (or the only one) stops at PLACE; returns
# when it has. $mpirun is the launcher, $stopped the rank.
begin() {
    name=$1 place=$3
    rank=$(($2 > 1))
    np=$2
    shift 3
    # In a pipeline sh would make it ignore SIGINT.
    perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' mpirun \
        -np "$np" "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/$name" "$@" debug.fault=stop \
        debug.fault_rank="$rank" debug.fault_at="$place" </dev/null >"$tmp/$name.out" 2>&1 &
    mpirun=$!
    within 60 "$name to come to '$place'" find_stopped "$name"
}

# within SECONDS WHAT COMMAND ...
within() {
    tries=$(($1 * 20 * ${DSV3_TIMEOUT_SCALE:-1})) what=$2
    shift 2
    until "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "waiting for $what took too long: $(cat "$tmp"/*.out)"
        sleep 0.05
    done
}

# The processes of dsv3 in that run.
ranks_of() {
    echo "run.dir=$tmp/$1" >"$tmp/$1.pattern" # not in this command's own arguments
    for path in $(grep -laF -f "$tmp/$1.pattern" /proc/[0-9]*/cmdline 2>/dev/null); do
        pid=${path#/proc/} pid=${pid%/cmdline}
        [ ! "/proc/$pid/exe" -ef "$dsv3" ] || echo "$pid"
    done
}
find_stopped() {
    for pid in $(ranks_of "$1"); do
        grep -q '^State:.T' "/proc/$pid/status" 2>/dev/null || continue
        stopped=$pid
        return 0
    done
    return 1
}

# The stopped rank has that signal (1 to 31) before it.
is_pending() {
    mask=$(sed -n 's/^ShdPnd:.*\(........\)$/\1/p' "/proc/$stopped/status")
    [ $((0x$mask >> ($1 - 1) & 1)) = 1 ]
}

# go_on: the stopped rank runs again; then $code is the launcher's.
go_on() {
    kill -CONT "$stopped"
    ended
}
ended() {
    code=0
    wait "$mpirun" || code=$?
}

# checkpoints NAME: their steps.
checkpoints() {
    (cd "$tmp/$1/checkpoints" && ls -d step-*) 2>/dev/null | sed 's/step-0*//' | xargs
}
