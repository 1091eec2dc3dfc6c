# The tensors of a released model are those of the shipped configuration: DeepSeek-V3's 91,991, of
# which 45,808 are scales of FP8 matrices and 2 the MTP module's copies of embedding and head.
#TEST timeout=60
. tests/lib_test.sh

# A file with all of their names and one element each: every one has the wrong shape, which is one
# error; a name that the model does not have would be two, that one and another that is missing.
mkdir "$tmp/names"
perl -e '
    my @name = map "$_.weight", qw(model.embed_tokens model.norm lm_head);
    for my $l (0 .. 61) {
        my @mlp = $l < 3 ? "mlp" : ("mlp.shared_experts", map "mlp.experts.$_", 0 .. 255);
        my @part = (qw(input_layernorm post_attention_layernorm), map "self_attn.$_",
            qw(q_a_proj q_a_layernorm q_b_proj kv_a_proj_with_mqa kv_a_layernorm kv_b_proj o_proj));
        push @part, map { ("$_.gate_proj", "$_.up_proj", "$_.down_proj") } @mlp;
        push @part, "mlp.gate" if $l >= 3;
        push @part, qw(enorm hnorm eh_proj shared_head.norm) if $l == 61;
        push @name, map "model.layers.$l.$_.weight", @part;
        push @name, "model.layers.$l.mlp.gate.e_score_correction_bias" if $l >= 3;
    }
    my $n = 0;
    my $text = join ",", map { my $at = 4 * $n++;
        sprintf q("%s":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}), $_, $at, $at + 4
    } @name;
    $text = "{$text}";
    print pack("Q<", length $text), $text, "\0" x (4 * $n);
    print STDERR "$n\n"' >"$tmp/names/model.safetensors" 2>"$tmp/n"
[ "$(cat "$tmp/n")" = $((91991 - 45808 - 2)) ] || fail "$(cat "$tmp/n") names"
code=0
"$DSV3_BUILD/dsv3-ckpt" import "$tmp/names" "$tmp/out" \
    --model configs/models/deepseek-v3-671b.yaml 2>"$tmp/err" || code=$?
[ $code = 65 ] || fail "exit code $code: $(head -n 3 "$tmp/err")"
tail -n 1 "$tmp/err" | grep -q "\.\.\. and $(($(cat "$tmp/n") - 50)) more" ||
    fail "not an error for each: $(tail -n 1 "$tmp/err")"
! grep -v 'found shape \[1\], expected\|more$' "$tmp/err" || fail 'another error'
