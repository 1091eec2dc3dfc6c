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
echo ok
