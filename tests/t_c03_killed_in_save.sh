# Runs that save every step, killed again and again meanwhile: each goes on from the newest
#TEST timeout=120 cores=2
# whole checkpoint and ends as if nothing had happened. Nothing has its name before it is on disk.
. tests/lib_train.sh
. tests/lib_faulty.sh
tests/kill_proof 6 "${KILL_SEED:-3}" 1 4 || fail "see above"

# Each file is synced after its last write, by each of its writers, before the manifest is begun;
# the manifest and the directory are synced before the directory gets its name.
faulty "FAULTY_LOG=$tmp/log" must_train order 4 $small train.steps=2 checkpoint.every=1
perl - "$tmp/log" <<'PERL' || fail "out of order: see above"
    my (%dirty, %renamed, %manifest, $bad);
    open my $in, '<', $ARGV[0] or die;
    for (sort { (split ' ', $a)[0] <=> (split ' ', $b)[0] } <$in>) {
        my (undef, $rank, $call, undef, undef, $path) = split;
        my ($dir, $file) = $path =~ m{/(step-\d+\.tmp)/?(.*)} or next;
        sub bad { print "@_\n"; $bad = 1; }
        bad("$call of $path after its directory was renamed") if $renamed{$dir};
        $dirty{$dir}{"$file of rank $rank"} = 1 if $call =~ /write|truncate/;
        delete $dirty{$dir}{"$file of rank $rank"} if $call eq 'sync';
        if ($file eq 'manifest.json' && $call eq 'open') {
            $manifest{$dir} = 1;
            bad("$dir: a manifest before the sync of $_") for keys %{$dirty{$dir}};
        }
        $dirty{$dir}{'the names'} = 1 if $file && $call eq 'open';
        delete $dirty{$dir}{'the names'} if !$file && $call eq 'sync';
        next if $call ne 'rename';
        $renamed{$dir} = 1;
        bad("$dir: no manifest") if !$manifest{$dir};
        bad("$dir: renamed before the sync of $_") for keys %{$dirty{$dir}};
    }
    bad(keys(%renamed) . ' checkpoints') if keys %renamed != 2;
    exit($bad // 0);
PERL

# What a kill of the machine may leave behind.
broken() {
    name=$1 words=$2
    cp -r "$tmp/order" "$tmp/$name"
    file=$tmp/$name/checkpoints/step-00000002/tensors-00000.h5
    eval "$3"
    faulty '' must_train "$name" 4 $small train.steps=2 checkpoint.every=1
    grep -q "^warning .*skipping checkpoint .*step-00000002 (.*tensors-00000.h5: $words" \
        "$tmp/$name.err" || fail "$name: $(cat "$tmp/$name.err")"
    grep -q '^resume  .*/step-00000001:' "$tmp/$name.out" || fail "$name: not from step 1"
    same order "$name" 0
}
later broken short '[0-9]* bytes, expected [0-9]*' 'truncate -s -4096 "$file"'
later broken zeros 'the bytes around its tensors: checksum .*altered' \
    'dd if=/dev/zero of="$file" bs=512 count=1 conv=notrunc status=none'
finish
echo ok
