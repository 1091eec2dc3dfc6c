# A wish to stop is kept until the end of the step, also when that never comes: then a second
#TEST timeout=100 cores=1
# SIGTERM, or the deadline, ends every process.
. tests/lib_train.sh
. tests/lib_stop.sh
make_run
place='step 3, gradient reduction'
set -- checkpoint.on_signal=true

# over NAME CODES WORDS
over() {
    took=$(date +%s)
    ended
    took=$(($(date +%s) - took))
    [ $took -lt $((30 * ${DSV3_TIMEOUT_SCALE:-1})) ] || fail "$1: took $took s"
    nothing_left "$1"
    echo " $2 " | grep -q " $code " || fail "$1: exit code $code: $(cat "$tmp/$1.out")"
    grep -q "$3" "$tmp/$1.out" || fail "$1: '$3' is not in: $(cat "$tmp/$1.out")"
}
others() {
    for pid in $(ranks_of "$1"); do [ "$pid" = "$stopped" ] || echo "$pid"; done
}

# mpirun lets the stopped rank go on before its SIGTERM: it is stopped again. (Where that comes too
# late the step is done, and saved.)
begin launcher 4 "$place" "$@" train.steps=100000
kill -TERM $mpirun
sleep 0.3
kill -STOP "$stopped" || :
sleep 0.7
kill -TERM $mpirun || :
over launcher '1 75' ''

begin ranks 4 "$place" "$@" run.deadline_s=60
for pid in $(others ranks); do kill -TERM "$pid"; done
sleep 2
[ "$(others ranks | wc -l)" = 3 ] || fail "one SIGTERM ended a rank: $(cat "$tmp/ranks.out")"
for pid in $(others ranks); do kill -TERM "$pid"; done
over ranks '143' '^stopped .* at once by a second SIGTERM; step 3, '
[ "$(grep -cE '^(stopped|fatal)' "$tmp/ranks.out")" = 1 ] || fail "$(cat "$tmp/ranks.out")"

begin deadline 4 "$place" "$@" run.deadline_s=3
for pid in $(others deadline); do kill -TERM "$pid"; done
over deadline '70' '^fatal .*rank 1 .* did not enter .*; step 3, '
[ -z "$(checkpoints ranks)$(checkpoints deadline)" ] || fail 'saved within a step'
echo ok
