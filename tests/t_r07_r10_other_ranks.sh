# A run goes on with another number of ranks and another micro-batch: the same tokens in every
#TEST timeout=200 cores=2
# step, the same losses within 1e-5 (sums over other parts round differently), whoever wrote it.
. tests/lib_resume.sh
make_run

# goes_on RANKS NAME [key=value ...]: from a copy of what NAME has left.
goes_on() {
    g_np=$1 g_from=$2
    shift 2
    cp -r "$tmp/$g_from" "$tmp/$g_from-$g_np"
    must_train "$g_from-$g_np" "$g_np" train.steps=10 $open_end "$@"
    resumed_at "$g_from-$g_np" 5
    same whole "$g_from-$g_np" 1e-5
}

must_train whole 1 train.steps=10 $open_end
later first four 4 5 topology.tp=2 topology.ep=2
later first eight 8 5 topology.tp=1 topology.ep=8
later first one 1 5
finish
later goes_on 1 four train.micro_batch=8
later goes_on 2 four topology.tp=2 topology.ep=1 train.micro_batch=2
later goes_on 8 four topology.tp=2 topology.ep=8
later goes_on 4 eight topology.tp=4 topology.ep=2
later goes_on 8 one topology.tp=1 topology.ep=4
later goes_on 2 one topology.ep=2
finish
