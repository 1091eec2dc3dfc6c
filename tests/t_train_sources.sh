# Training on two sources of two formats with weights, and a share of both held out: the same run on
#TEST timeout=120
# 1 and 4 ranks; and what is refused.
. tests/lib_train.sh

make_run
zstd -dcq "$tmp/train.tok.zst" | head -c 40000 >"$tmp/ids.u16"
sources="[{path: $tmp/heldout.tok.zst}, {path: $tmp/ids.u16, weight: 3, eod_id: 256}]"
set -- "data.train=$sources" 'data.heldout=[]' data.heldout_share=0.2 data.document_mask=true
must_train one 1 "$@"
must_train four 4 "$@"
same one four 1e-5
perl -MJSON::PP -ne '$o = decode_json($_); next unless defined $o->{eval_loss};
    for (@{$o->{eval_sources}}) { $n += $_->{tokens}; $sum += $_->{tokens} * $_->{loss}; }
    $n == $o->{eval_tokens} && abs($sum / $n - $o->{eval_loss}) < 1e-9 or die "sources: $_";
    $o->{eval_sources}[1]{path} =~ /ids.u16$/ or die "no such source: $_";
    $n_evals++;
    $n = $sum = 0;
    END { $n_evals > 0 or die "no held-out loss\n" }' "$tmp/one/metrics.jsonl" ||
    fail 'see above'
grep -q '^eval.*  sources: *[1-9][.0-9]*, [1-9][.0-9]*$' "$tmp/one.out" ||
    fail 'no losses of sources'
grep -q 'ids.u16: weight 0.75' "$tmp/one.out" || fail "no such source: $(cat "$tmp/one.out")"

# The epochs of each source: what the start foretold the last step reports. Memory only grows.
perl -MJSON::PP -we 'my ($metrics, $out) = @ARGV;
    my @foretold = map { /^ .*: weight .* (\S+) epochs in all/ ? $1 : () } `cat $out`;
    my @steps = grep { defined $_->{loss} } map { decode_json($_) } `cat $metrics`;
    my @last = map { sprintf "%.3g", $_ } @{$steps[-1]{epoch}};
    die "epochs @last, foretold @foretold\n" unless @last == 2 && "@last" eq "@foretold";
    my ($sum, $before) = (0, 1e6);
    for (@steps) {
        die "step $_->{step}: memory $_->{memory_bytes}\n" unless $_->{memory_bytes} >= $before;
        $before = $_->{memory_bytes};
        die "epoch $_->{epoch}[0]\n" unless $_->{epoch}[0] > $sum;
        $sum = $_->{epoch}[0];
    }' "$tmp/one/metrics.jsonl" "$tmp/one.out" || fail 'epochs or memory'

# Each source has its own limit of epochs: 60 steps x 8 take 120 of the small one, too many.
train epochs 2 "$@" train.steps=60 data.max_epochs=1 && fail 'more than one epoch was trained'
[ "$code" = 78 ] || fail "exit code $code"
grep -q 'of .*heldout.tok.zst, data.max_epochs 1 gives' "$tmp/epochs.out" ||
    fail "source not named: $(cat "$tmp/epochs.out")"

# The same ids, stated as wider than they are.
train wide 2 "data.train={path: $tmp/ids.u16, format: u32}" && fail 'u16 was read as u32'
[ "$code" = 65 ] || fail "exit code $code"
grep -q 'ids.u16: token .* is id .*, vocabulary 512' "$tmp/wide.out" ||
    fail "$(cat "$tmp/wide.out")"

train none 2 data.heldout=[] data.heldout_share=0.9999 && fail 'nothing was left to train on'
[ "$code" = 65 ] || fail "exit code $code"
grep -q 'data.heldout_share 0.9999 leaves none' "$tmp/none.out" || fail "$(cat "$tmp/none.out")"

# Documents to be masked that nothing tells apart; held-out data of another tokenizer.
later refused 65 'ids.u16: data.document_mask is true, but nothing tells' untold 2 \
    data.train="$tmp/ids.u16" data.document_mask=true
"$DSV3_BUILD/dsv3-tokenize" --tokenizer tests/golden/tokenizer/nano.json --max-vocab 500 \
    --eod none --out "$tmp/other.tok.zst" "$tmp/text" >/dev/null
later refused 65 'heldout data: .*other.tok.zst: tokenizer .*train.tok.zst of train has "bytes"' \
    other 2 data.heldout="$tmp/other.tok.zst"
finish
