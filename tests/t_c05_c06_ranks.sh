# Any number of ranks saves and goes on as if nothing had been, also where tensors have fewer
#TEST timeout=200 cores=2
# elements than there are ranks and most ranks have nothing to write of them.
. tests/lib_resume.sh
make_run

# through RANKS [key=value ...]: three steps, and two and one.
through() {
    t_np=$1
    shift
    set -- "$@" train.global_batch="$t_np" debug.param_hash=true checkpoint.verify=true
    first "whole$t_np" "$t_np" 3 "$@"
    first "parts$t_np" "$t_np" 2 "$@"
    first "parts$t_np" "$t_np" 3 "$@"
    resumed_at "parts$t_np" 2
    same_end "whole$t_np" "parts$t_np"
    same_checkpoint "whole$t_np" "parts$t_np" 3
}

later through 3
later through 7
later through 8 topology.ep=8 model.q_lora_rank=1 model.kv_lora_rank=7
finish
