# Nothing in a configuration is a pattern: what selects a tensor is its whole name, what selects a
#TEST timeout=60 cores=1
# file its whole path, and one that matches nothing is an error.
. tests/lib_train.sh
make_run

"$dsv3" check --reference >"$tmp/keys"
grep -iE 'pattern|regex|glob\b|wildcard|prefix' "$tmp/keys" && fail 'a key takes a pattern'

refused() {
    code=0
    train "$@" || code=$?
    [ $code = "$want" ] || fail "$*: exit code $code: $(cat "$tmp/$1.out")"
    [ ! -e "$tmp/$1" ] || fail "$*: has begun"
}
want=78
gate=model.layers.1.mlp.gate.weight
for param in mlp.gate. 'model.layers.*' "$gate.x"; do
    refused pattern 1 debug.bad_grad_step=1 "debug.bad_grad_param=$param"
    grep -qF "debug.bad_grad_param $param: no such parameter" "$tmp/pattern.out" ||
        fail "$param: $(cat "$tmp/pattern.out")"
done
# The whole name is that one tensor, and no other: the step that it spoils says so.
must_train whole 1 debug.bad_grad_step=1 "debug.bad_grad_param=$gate" data.heldout=[]
grep -q "step 1: .*$gate" "$tmp/whole.out" || fail "$gate: $(cat "$tmp/whole.out")"

want=66
for path in "$tmp/*.tok.zst" "$tmp/train"; do
    refused path 1 "data.train=$path"
    grep -qF "$path: No such file" "$tmp/path.out" || fail "$path: $(cat "$tmp/path.out")"
done
