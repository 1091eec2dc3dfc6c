# `dsv3 train` tells at its end what each role has taken of what was planned: with balanced routing
#TEST timeout=100 cores=2
# the same bytes, and those of metrics.jsonl, that `dsv3 plan` prints for that job.
. tests/lib_train.sh
make_run

# check NAME: $tmp/NAME.json is the plan of the run NAME. Prints what differs.
check() {
    perl -MJSON::PP -e '
        my ($name, $balanced) = @ARGV;
        sub slurp { local (@ARGV, $/) = @_; <> }
        my $plan = decode_json(slurp("$name.json"));
        my ($line) = slurp("$name.out") =~ /^memory  bytes used of planned: (.*)$/m;
        my $n = 0;
        while ($line =~ /(\w+) (\d+) of (\d+)(?: \(up to (\d+)\))?/g) {
            my ($role, $used, $planned, $worst) = ($1, $2, $3, $4 // $3);
            my ($want, $most) = map { $plan->{$_}{$role} } qw(per_rank_bytes per_rank_bytes_worst);
            print "$role: planned $planned, $worst; dsv3 plan says $want, $most\n"
                unless $planned == $want && $worst == $most;
            print "$role: used $used, planned $planned, worst $worst\n"
                if $balanced ? $used != $planned : $used > $worst;
            $n++;
        }
        print "$n roles: $line\n" unless $n == 6;
        my $sent = $plan->{traffic_bytes_per_step_all_ranks};
        my @steps = grep { defined $_->{loss} } map { decode_json($_) }
            split /\n/, slurp("$name/metrics.jsonl");
        print "$_->{bytes_intra} and $_->{bytes_inter} bytes in step $_->{step}, planned ",
            "$sent->{intra} and $sent->{inter}\n"
            for grep { $balanced && ($_->{bytes_intra} != $sent->{intra}
                || $_->{bytes_inter} != $sent->{inter}) } @steps;
        print scalar @steps, " steps\n" unless @steps == 3;
        ' "$tmp/$1" "$2"
}
while read -r name np more; do
    options="train.steps=3 train.eval_every=2 $more"
    must_train "$name" "$np" $options
    "$dsv3" plan "$tmp/run.yaml" --ranks "$np" --json $options >"$tmp/$name.json"
    case $more in *balanced*) balanced=1 ;; *) balanced=0 ;; esac
    check "$name" $balanced >"$tmp/wrong"
    [ ! -s "$tmp/wrong" ] || fail "$name: $(cat "$tmp/wrong")"
done <<MESHES
np1 1 debug.balanced_routing=true
dp2 2 debug.balanced_routing=true topology.ranks_per_node=1 train.compute_dtype=bf16
tp2ep4 4 debug.balanced_routing=true topology.tp=2 topology.ep=4 topology.ranks_per_node=2
natural 2 topology.ep=2
MESHES
