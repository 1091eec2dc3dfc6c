# A dump says of every token what the reports say of the batch: losses average to the reported
#TEST timeout=60 cores=2 san=1
# ones, expert ids add up to the counts; it is the same for every sample on every mesh. The other
# numbers of a report fit together.
. tests/lib_train.sh
make_run

# Step 1: all meshes start from the same weights. Routing is compared too, so the scores may not
# differ by the order of F32 sums: 1e-5 on the losses is for that.
must_train np1 1 train.steps=2 debug.dump_step=1 train.micro_batch=4
must_train np1 1 train.steps=2 debug.dump_step=1 train.micro_batch=4 # replaces the first
must_train mesh 4 train.steps=2 debug.dump_step=1 topology.tp=2 topology.ep=4
cat >"$tmp/check.pl" <<'PERL'
use strict;
use warnings;
use JSON::PP;

sub rows { open my $in, '<', $_[0] or die "$_[0]: $!\n"; return map { decode_json($_) } <$in>; }
sub near { return abs($_[0] - $_[1]) <= $_[2] * abs($_[0]); }

# Per sample and position: [loss, MTP loss, experts of each layer].
sub tokens_of {
    my ($run) = @_;
    my %token;
    for my $row (map { rows($_) } glob "$run/dump-step-1/rank-*.jsonl") {
        for my $i (0 .. $#{$row->{loss}}) {
            my $place = $row->{first} + $i;
            my $at = "$row->{sample}:$place";
            die "$run: $at twice\n" if $token{$at};
            # Of the 32 places of a window only the last has no label for the MTP module.
            die "$run: $at: MTP loss $row->{mtp_loss}[0][$i]\n"
                if $place > 31 || ($place == 31) != ($row->{mtp_loss}[0][$i] == 0);
            my $by_layer = $row->{experts};
            my %experts = map { $_ => join ',', @{$by_layer->{$_}[$i]} } keys %$by_layer;
            $token{$at} = [$row->{loss}[$i], $row->{mtp_loss}[0][$i], \%experts];
        }
    }
    return \%token;
}

sub check_report {
    my ($run, $token) = @_;
    my ($report) = grep { defined $_->{loss} && $_->{step} == 1 } rows("$run/metrics.jsonl");
    my ($loss, $mtp_loss, @count) = (0, 0);
    my $n = keys %$token;
    die "$run: $n tokens\n" unless $n == 8 * 32 && $report->{tokens} == $n;
    for (values %$token) {
        $loss += $_->[0];
        $mtp_loss += $_->[1];
        for my $layer (keys %{$_->[2]}) { $count[$layer - 1][$_]++ for split ',', $_->[2]{$layer}; }
    }
    die "$run: loss $report->{loss}, dumped ", $loss / $n, "\n"
        unless near($loss / $n, $report->{loss}, 1e-6);
    die "$run: MTP loss\n" unless near($mtp_loss / (8 * 31), $report->{mtp_loss}, 1e-6);
    my $dumped = encode_json([map { my $l = $_; [map { $l->[$_] // 0 } 0 .. 7] } @count]);
    die "$run: counts $dumped\n" unless $dumped eq encode_json($report->{expert_count});
    die "$run: tok_s\n" unless near($report->{tok_s} * $report->{step_s}, $n, 1e-9);
    die "$run: times\n" unless $report->{compute_s} > 0 && $report->{compute_s} + $report->{comm_s}
        <= $report->{step_s} * (1 + 1e-9);
}

my ($one, $mesh) = map { tokens_of($_) } @ARGV;
check_report($ARGV[0], $one);
check_report($ARGV[1], $mesh);
for my $at (sort keys %$one) {
    my ($x, $y) = ($one->{$at}, $mesh->{$at});
    die "$at is only in $ARGV[0]\n" unless $y;
    for (0, 1) { die "$at: losses $x->[$_] and $y->[$_]\n" unless near($x->[$_], $y->[$_], 1e-5); }
    for (keys %{$x->[2]}) {
        die "$at: layer $_: experts $x->[2]{$_} and $y->[2]{$_}\n" if $x->[2]{$_} ne $y->[2]{$_};
    }
}
PERL
perl "$tmp/check.pl" "$tmp/np1" "$tmp/mesh" || fail 'the dumps do not fit the reports or each other'
echo ok
