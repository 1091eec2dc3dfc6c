# Where MPI_Init fails, Open MPI ends the process after a page that knows nothing of dsv3: one line
#TEST timeout=60 cores=1
# says where the command lines are that work, alone and below mpirun.
. tests/lib_test.sh
export OMPI_MCA_pml=none
for launcher in '' 'mpirun -np 2'; do
    code=0
    $launcher "$dsv3" train tests/tiny.yaml run.dir="$tmp/run" </dev/null >"$tmp/out" 2>&1 ||
        code=$?
    [ $code = 1 ] || fail "'$launcher': exit code $code: $(cat "$tmp/out")"
    for _ in 1 2 3 4 5 6 7 8 9 10; do # the process that says it outlives the one that failed
        ! grep -q '^fatal' "$tmp/out" || break
        sleep 0.5
    done
    [ "$(grep -c '^fatal .*MPI.*docs/batch.md' "$tmp/out")" = 1 ] ||
        fail "'$launcher': not one hint in: $(cat "$tmp/out")"
    [ ! -e "$tmp/run" ] || fail "'$launcher': wrote $tmp/run"
done

# Where it does not fail nothing is said or left.
unset OMPI_MCA_pml
code=0
"$dsv3" train no-such-file.yaml >"$tmp/out" 2>&1 || code=$?
[ $code = 78 ] && [ "$(wc -l <"$tmp/out")" = 1 ] || fail "exit code $code: $(cat "$tmp/out")"
echo ok
