# dsv3 check prints every value that mixture-of-experts training depends on, with its source, for
#TEST timeout=30
# every ready run; the published ones state those that matter, and no default is a silent 0.
. tests/lib_test.sh

# value KEY: "VALUE # SOURCE" of the print in $tmp/out.
value() {
    sed -n "s/^ *$1: *\(.*[^ ]\) *# \(.*\)/\1 # \2/p" "$tmp/out"
}
# stated RUN KEY VALUE: the run or its model file says so.
stated() {
    "$dsv3" check "configs/runs/$1.yaml" >"$tmp/out"
    case $(value "$2") in
    "$3 # configs/"*.yaml:[0-9]*) ;;
    *) fail "$1: $2 is '$(value "$2")', expected $3 from a file" ;;
    esac
}

moe='routed_scaling_factor scoring_func topk_method norm_topk_prob n_group topk_group
    num_experts_per_tok n_shared_experts num_nextn_predict_layers router_bias_speed
    router_bias_speed_stages router_bias_centred balance_loss_alpha mtp_loss_weight
    mtp_loss_weight_stages'
for run in configs/runs/*.yaml; do
    "$dsv3" check "$run" >"$tmp/out"
    for key in $moe; do
        case $(value "$key") in
        '') fail "$run: $key is not printed with its source" ;;
        '0 # default') fail "$run: $key is 0 without anybody having said so" ;;
        esac
    done
done

stated deepseek-v3-671b-2048gpu balance_loss_alpha 0.0001
stated deepseek-v3-671b-2048gpu router_bias_speed 0.001
stated deepseek-v3-671b-2048gpu mtp_loss_weight 0.3
stated deepseek-v3-671b-2048gpu routed_scaling_factor 2.5
for run in moonlight-16b-8gpu moonlight-16b-1gpu; do
    stated $run balance_loss_alpha 0.0001
    stated $run router_bias_speed 0.001
    stated $run router_bias_centred true
    stated $run routed_scaling_factor 2.446
done

# A file that says nothing gets the paper's values, not zeros.
"$dsv3" check configs/models/deepseek-v3-671b.yaml >"$tmp/out"
for pair in 'balance_loss_alpha 0.0001' 'router_bias_speed 0.001' 'mtp_loss_weight 0.3'; do
    [ "$(value "${pair% *}")" = "${pair#* } # default" ] || fail "${pair% *}: $(value "${pair% *}")"
done
echo ok
