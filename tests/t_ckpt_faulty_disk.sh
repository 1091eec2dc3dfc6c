# Every call of a save fails once, on all ranks at once or on one: what is saved is whole and right,
#TEST timeout=120 cores=2
# a line says what is not, the next save is good, and training goes on or stops as configured.
. tests/lib_train.sh
. tests/lib_faulty.sh
make_run
saving="$small checkpoint.every=1 checkpoint.keep_last=0 run.overwrite=false train.eval_every=0"

# check_saved NAME STEPS ERROR: in every second save there was a fault, until there were no more
# calls. (That a directory does not close changes nothing.)
check_saved() {
    only_those_of whole "$1"
    ! ls -d "$tmp/$1"/checkpoints/*.tmp 2>/dev/null || fail "$1: left behind"
    [ "$(readlink "$tmp/$1/checkpoints/latest")" = "$(printf step-%08d "$2")" ] ||
        fail "$1: latest is not the newest"
    perl - "$2" "$3" "$tmp/$1.err" "$tmp/$1/checkpoints" <<'PERL' || fail "$1: see above"
        my ($steps, $error, $err, $root) = @ARGV;
        my (%line, $bad, $link);
        sub said { print "@_\n"; $bad = 1; }
        open my $in, '<', $err or die;
        while (<$in>) {
            next if /checkpoints.latest.*: \Q$error\E; checkpoints are good without that link$/
                && !$link++;
            my ($step, $why) = /^warning .*checkpoint of step (\d+): (.*); training continues$/
                or said("another line: $_");
            said("two lines of step $step") if $line{$step}++;
            said("neither file nor cause: $_") if $why !~ /$root.*: \Q$error\E$/;
            said("no fault in step $step") if $step % 2;
        }
        for (1 .. $steps) {
            my $there = -e sprintf '%s/step-%08d', $root, $_;
            said("step $_ is not there, and nothing was said") if !$there && !$line{$_};
        }
        my $last = (sort { $b <=> $a } keys %line)[0];
        said(keys(%line), "saves failed, the last of step $last of $steps")
            if keys %line < 8 || $last > $steps - 2;
        exit($bad // 0);
PERL
}
# goes_on NAME STEPS ERROR FAULTS
goes_on() {
    name=$1 steps=$2 error=$3
    faulty "$4" must_train "$name" 2 $saving train.steps="$steps" checkpoint.on_error=warn
    check_saved "$name" "$steps" "$error"
}
faulty '' must_train whole 2 $saving train.steps=60
checkpoints_of whole >"$tmp/whole.digests"
later goes_on calls 47 'Input/output error' 'FAULTY_HOW=EIO FAULTY_AT=walk
    FAULTY_CALL=sync,open,close,truncate,rename,mkdir,symlink'
later goes_on full 26 'No space left on device' 'FAULTY_HOW=ENOSPC FAULTY_AT=walk
    FAULTY_CALL=write FAULTY_STRIDE=13'
later goes_on other 22 'Input/output error' 'FAULTY_HOW=EIO FAULTY_AT=walk FAULTY_CALL=write
    FAULTY_STRIDE=13 FAULTY_RANKS=1'

# No faults: a disk may take half, and a call may have to be made again.
harmless() {
    name=$1
    faulty "$2" must_train "$name" 2 $saving train.steps=3
    [ ! -s "$tmp/$name.err" ] || fail "$name: $(cat "$tmp/$name.err")"
    only_those_of whole "$name"
    [ "$(wc -l <"$tmp/$name.digests")" = 3 ] || fail "$name: not three checkpoints"
}
later harmless half 'FAULTY_HOW=short FAULTY_AT=every FAULTY_CALL=write'
later harmless again 'FAULTY_HOW=EINTR FAULTY_AT=odd FAULTY_CALL=write,sync,open,close
    FAULTY_PATH=/step-'

# The same faults end a run, unless it is told to go on; it can be started again.
stops() {
    name=$1
    faulty "$3" fails 74 "^fatal .*checkpoint of step [1-9].*$2" "$name" 4 $saving train.steps=6
    only_those_of whole4 "$name"
    ! ls -d "$tmp/$name"/checkpoints/*.tmp 2>/dev/null || fail "$name: left behind"
    faulty '' must_train "$name" 4 $saving train.steps=6
    grep -q "^resume  $tmp/$name/checkpoints/step-" "$tmp/$name.out" || fail "$name: began anew"
    only_those_of whole4 "$name"
    [ -e "$tmp/$name/checkpoints/step-00000006" ] || fail "$name: the last one is not there"
}
finish
faulty '' must_train whole4 4 $saving train.steps=6
checkpoints_of whole4 >"$tmp/whole4.digests"
later stops write 'tensors-00000.h5: writing .*: Input/output' \
    'FAULTY_HOW=EIO FAULTY_CALL=write FAULTY_AT=300 FAULTY_RANKS=2'
later stops sync 'cannot sync .*tensors-00000.h5: Input/output' \
    'FAULTY_HOW=EIO FAULTY_CALL=sync FAULTY_AT=3 FAULTY_RANKS=1'
later stops rename 'cannot rename .*step-00000003.tmp: Input/output' \
    'FAULTY_HOW=EIO FAULTY_CALL=rename FAULTY_AT=5'
finish
echo ok
