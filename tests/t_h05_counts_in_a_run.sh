# A run can compare all counts before it exchanges rows (debug.check_exchange), which changes no
#TEST timeout=60 cores=2
# number; it says which MPI it runs on.
. tests/lib_train.sh
make_run
must_train plain 4 topology.tp=2 topology.ep=4
must_train checked 4 topology.tp=2 topology.ep=4 debug.check_exchange=true
same plain checked 0
grep -q '^with  *[A-Z].*[0-9]\.[0-9], HDF5 [0-9]' "$tmp/plain.out" ||
    fail "no version: $(cat "$tmp/plain.out")"
echo ok
