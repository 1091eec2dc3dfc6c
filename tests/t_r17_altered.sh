# One altered byte of a tensor, a header, the manifest or the settings is found before anything is
#TEST timeout=100 cores=2
# used, on the mesh that wrote it and on another; it is named, and the checkpoint before it offered.
. tests/lib_resume.sh
make_run
set -- checkpoint.every=2 topology.ep=2 train.steps=6 checkpoint.keep_last=0 debug.param_hash=true
must_train whole 4 "$@"
root=$tmp/whole/checkpoints

# flip FILE OFFSET: another byte there.
flip() {
    perl -e 'my ($file, $at) = @ARGV; open my $f, "+<", $file or die; seek $f, $at, 0;
        read $f, my $byte, 1; seek $f, $at, 0; print $f chr(ord($byte) ^ 4)' "$1" "$2"
}

# altered NAME FILE OFFSET WORDS RANKS: by its path it is refused, by itself it is passed over.
altered() {
    a_name=$1 a_file=$2 a_at=$3 a_words=$4 a_np=$5
    shift 5
    cp -r "$tmp/whole" "$tmp/$a_name"
    flip "$tmp/$a_name/checkpoints/step-00000006/$a_file" "$a_at"
    fails 65 "run.resume: .*$a_words.*; the one before it: run.resume=.*step-00000004" "$a_name" \
        "$a_np" "$@" run.resume="$tmp/$a_name/checkpoints/step-00000006"
    must_train "$a_name" "$a_np" "$@"
    grep -q "skipping checkpoint .*step-00000006 (.*$a_words" "$tmp/$a_name.err" ||
        fail "$a_name: silent"
    same whole "$a_name" 1e-5
}

tensor=$(perl -ne 'print $1 if m{"model/model.layers.2.mlp.experts.3.up_proj.w.*"offset": (\d+)}' \
    "$root/step-00000006/manifest.json")
where=$((tensor + 100)) words='layers.2.mlp.experts.3.up_proj.weight, box'
later altered tensor tensors-00000.h5 $where "$words" 4 "$@"
later altered other tensors-00000.h5 $where "$words" 1 "$@" topology.ep=1
later altered header tensors-00000.h5 100 'bytes around its tensors' 2 "$@"
later altered manifest manifest.json 300 'manifest.json: checksum' 2 "$@"
later altered settings config.yaml 10 'config.yaml: is not what' 2 "$@"
finish
