# tokens/s is the step's tokens over the step's time as a clock outside sees it: all ranks and
#TEST timeout=100 cores=2
# micro-batches, every token once with two MTP modules, neither evaluation nor the past in it; the
# first step is marked and left out of the summary.
. tests/lib_train.sh
make_run

cat >"$tmp/stamp.pl" <<'PERL'
use Time::HiRes qw(time);
$| = 1;
while (<STDIN>) { printf '%.6f %s', time, $_; }
PERL
timeout 90 mpirun -np 2 "$dsv3" train "$tmp/run.yaml" \
    run.dir="$tmp/run" train.steps=20 train.global_batch=32 train.micro_batch=4 train.eval_every=5 \
    train.log_every=1 model.num_nextn_predict_layers=2 </dev/null 2>&1 |
    perl "$tmp/stamp.pl" >"$tmp/stamped"

cat >"$tmp/check.pl" <<'PERL'
use strict;
use warnings;
use JSON::PP;
use constant { STEPS => 20, TOKENS => 32 * 32 };

my ($metrics, $stamped) = @ARGV;
sub lines { open my $in, '<', $_[0] or die "$_[0]: $!\n"; return <$in>; }
sub median { my @x = sort { $a <=> $b } @_; return ($x[$#x / 2] + $x[@x / 2]) / 2; }
sub near {
    my ($what, $x, $want, $tolerance) = @_;
    die "$what: $x, expected $want\n" if abs($x - $want) > $tolerance * $want;
}

# Reports and console lines come in the same order, one for one.
my @reports = grep { $_->{step} } map { decode_json($_) } lines($metrics);
my @shown = grep { / (?:step|eval): / } lines($stamped);
my @steps = grep { defined $_->{tok_s} } @reports;
die @steps . " steps\n" if @steps != STEPS;
die @reports . ' reports, ' . @shown . " lines\n" if @reports != @shown;

my (%ratio, $last);
for my $i (0 .. $#reports) {
    my ($r, $now) = ($reports[$i], (split ' ', $shown[$i])[0]);
    my ($kind, $own_s) = ('step', $r->{step_s});
    ($kind, $own_s) = ('evaluation', $r->{eval_s}) if defined $r->{eval_s};
    $kind = 'step after an evaluation' if $i > 0 && defined $reports[$i - 1]{eval_s};
    push @{$ratio{$kind}}, ($now - $last) / $own_s if $i > 0;
    $last = $now;
}
# Medians: another process may take the machine for a moment between a report and its line; of the
# few after evaluations that leaves less. What belongs to neither would make it a half or double.
near('clock / step_s', median(@{$ratio{step}}), 1, 0.05);
near('clock / eval_s', median(@{$ratio{evaluation}}), 1, 0.3);
near('clock / step_s after an evaluation', median(@{$ratio{'step after an evaluation'}}), 1, 0.3);

for (@steps) {
    near("step $_->{step}: tokens", $_->{tokens}, $_->{step} * TOKENS, 0);
    near("step $_->{step}: tok_s x step_s", $_->{tok_s} * $_->{step_s}, TOKENS, 1e-9);
}
my @marked = grep { /\(first step\)/ } @shown;
die "marked as first: @marked" if @marked != 1 || $marked[0] !~ /step: +1\/20 /;
my ($summary) = map { m{ tokens/s +([\d,]+), median of the steps without } } lines($stamped);
my $median = median(map { $_->{tok_s} } @steps[1 .. STEPS - 1]);
near('tokens/s of the summary', $summary =~ s/,//gr, $median, 1e-3); # rounded to whole ones
PERL
perl "$tmp/check.pl" "$tmp/run/metrics.jsonl" "$tmp/stamped" || {
    cat "$tmp/stamped"
    fail 'tokens/s'
}
echo ok
