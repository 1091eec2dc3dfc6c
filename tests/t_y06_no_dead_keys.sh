# No key is parsed and then ignored: the field of every key is read by the code that it is for, and
#TEST timeout=60
# an evaluation interval gives exactly that many held-out losses, over a positive count of tokens.
. tests/lib_train.sh

# The fields of section S are read as S.field of a struct config, or as X->field where X is a
# struct config_S in that file. Fields that only the configuration itself checks:
cat >"$tmp/fields.pl" <<'PERL'
use strict;
use warnings;
my %checked_only = map { $_ => 1 } ('model.max_position_embeddings');
sub text_of { local (@ARGV, $/) = @_; return <>; }

my ($table) = text_of('src/config/keys.c') =~ /^const struct key config_keys\[\](.*?)^\};/ms;
$table =~ s/"[^"]*"//g;
my %field = map { $_ => 1 } $table =~
    /\b((?:run|topology|data|model|train|optimizer|debug)\.[a-z]\w*)/g;
die 'only ', scalar keys %field, " fields found in keys.c\n" if keys %field < 70;
my %read;
for my $file (grep { !m{^src/config/} } glob 'src/*/*.[ch]') {
    my $text = text_of($file);
    $text =~ s{/\*.*?\*/}{}gs;
    $text =~ s/"(\\.|[^"\\])*"//g;
    $read{"$1.$2"} = 1 while $text =~ /\b(?:cfg|c|config)(?:->|\.)(\w+)\.(\w+)/g;
    my %section;
    push @{$section{$2}}, $1 while $text =~ /struct config_(\w+) \*(\w+)/g;
    while ($text =~ /\b(\w+)->(\w+)/g) { $read{"$_.$2"} = 1 for @{$section{$1} // []}; }
}
my @dead = grep { !$read{$_} && !$checked_only{$_} } sort keys %field;
print "$_: parsed, but nothing reads it\n" for @dead;
exit(@dead ? 1 : 0);
PERL
perl "$tmp/fields.pl" || fail 'dead keys'

make_run
for every in 5 4; do
    must_train "every-$every" 1 train.steps=10 train.eval_every=$every train.eval_sequences=2
done
evals() {
    perl -MJSON::PP -ne '$r = decode_json($_); print "$r->{step}:$r->{eval_tokens} "
        if defined $r->{eval_loss}' "$tmp/$1/metrics.jsonl"
}
[ "$(evals every-5)" = '5:64 10:64 ' ] || fail "eval_every 5 in 10 steps: $(evals every-5)"
# Where the last step is not a multiple it is evaluated as well.
[ "$(evals every-4)" = '4:64 8:64 10:64 ' ] || fail "eval_every 4 in 10 steps: $(evals every-4)"
