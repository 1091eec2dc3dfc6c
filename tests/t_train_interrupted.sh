# Ctrl-C, as a terminal sends it and to mpirun alone, and SIGTERM end a run cleanly: no success, at
#TEST timeout=60 cores=1
# most one line, whole lines of metrics, and no process left.
. tests/lib_train.sh
make_run
# In a session of its own, so that a group can be interrupted without this test.
cat >"$tmp/start" <<'PERL'
my ($signal, $group, $metrics, @command) = @ARGV;
my $pid = fork // die;
if (!$pid) {
    setpgrp;
    $SIG{INT} = 'DEFAULT'; # a background process of sh ignores it
    open STDIN, '<', '/dev/null';
    exec @command;
}
my $deadline = time + 40;
my $steps = 0;
while ($steps < 3 && time < $deadline) {
    select undef, undef, undef, 0.05;
    open my $in, '<', $metrics or next;
    $steps = () = join('', <$in>) =~ /"loss"/g;
}
kill $signal, $group ? -$pid : $pid;
waitpid $pid, 0;
exit($? >> 8 || ($? & 127) + 128);
PERL
interrupted() {
    name=$1 signal=$2 group=$3 code=0
    perl "$tmp/start" "$signal" "$group" "$tmp/$name/metrics.jsonl" mpirun -np 4 \
        "$dsv3" train "$tmp/run.yaml" run.dir="$tmp/$name" train.steps=100000 \
        >"$tmp/$name.out" 2>"$tmp/$name.err" || code=$?
    [ $code -ne 0 ] && [ $code -lt 128 ] || fail "$name: exit code $code"
    [ "$(wc -l <"$tmp/$name.err")" -le 1 ] || fail "$name: $(cat "$tmp/$name.err")"
    grep -q '"loss"' "$tmp/$name/metrics.jsonl" || fail "$name: no step"
    perl -MJSON::PP -ne 'decode_json($_); die "cut\n" if !/\n$/' "$tmp/$name/metrics.jsonl" ||
        fail "$name: broken metrics"
    nothing_left "$name"
}
later interrupted terminal INT 1
later interrupted mpirun INT 0
later interrupted asked TERM 0
finish
echo ok
