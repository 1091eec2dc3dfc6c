# How the global batch is cut into micro-batches does not change the training (F32 sums in another
# TEST timeout=100 cores=2
# order: 1e-5), also with document masks, where sequences have very different numbers of labels.
. tests/lib_train.sh
make_run
for mask in false true; do
    must_train "cut-$mask-8x1" 1 train.micro_batch=1 data.document_mask=$mask
    must_train "cut-$mask-2x4" 1 train.micro_batch=4 data.document_mask=$mask
    must_train "cut-$mask-1x8" 1 train.micro_batch=8 data.document_mask=$mask
    must_train "cut-$mask-dp2" 2 train.micro_batch=2 data.document_mask=$mask topology.tp=2
    for cut in 2x4 1x8 dp2; do same "cut-$mask-8x1" "cut-$mask-$cut" 1e-5; done
done

# Zeroed scores tie everywhere: the balance loss is alpha itself, however the batch is cut.
for micro in 1 4 8; do
    must_train "tie-$micro" 1 train.steps=1 optimizer.warmup_steps=1 train.micro_batch=$micro \
        model.initializer_range=1e-30 train.balance_loss_alpha=0.5
    perl -MJSON::PP -ne '$r = decode_json($_); next unless defined $r->{loss};
        exit(abs($r->{balance_loss} - 0.5) < 1e-6 ? 0 : 1)' "$tmp/tie-$micro/metrics.jsonl" ||
        fail "balance loss of tied scores is not alpha with micro-batch $micro"
done
echo ok
