# A key that is misspelt, or stands in the wrong section, ends the run before it begins, with its
#TEST timeout=60 cores=2
# line and the key that was probably meant; nothing is ever left unread.
. tests/lib_check.sh

write top <<'YAML'
run: {dir: x}
data: {train: x.tok.zst}
learning_rate: 1e-3
YAML
refuses top '4:1: learning_rate: unknown key; nearest known key is optimizer.lr'

write near <<'YAML'
run: {dir: x}
data: {train: x.tok.zst}
optimizer:
  lerning_rate: 1e-3
model:
  num-layers: 4
  Hidden_Size: 64
YAML
refuses near '5:3: optimizer.lerning_rate: unknown key; nearest known key is optimizer.lr'
refuses near '7:3: model.num-layers: unknown key; nearest known key is model.num_hidden_layers'
refuses near '8:3: model.Hidden_Size: unknown key; nearest known key is model.hidden_size'

write section <<'YAML'
run: {dir: x}
data: {train: x.tok.zst}
train:
  lr: 1e-3
model:
  moe:
    n_routed_experts: 16
optimiser:
  lr: 1e-3
YAML
refuses section '5:3: train.lr: unknown key; lr belongs to section optimizer: optimizer.lr'
refuses section '7:3: model.moe: unknown key'
refuses section '9:1: optimiser: unknown key; nearest known section is optimizer'

write command <<'YAML'
run: {dir: x}
data: {train: x.tok.zst}
YAML
accepts command 'lr: 0.001'
key=optimizer.learning_rate
refuses command "command line: $key: unknown key; nearest known key is optimizer.lr" $key=1e-3

# The same in a run: all ranks are gone at once and nothing was begun.
code=0
timeout 60 mpirun -np 2 "$dsv3" train "$tmp/near.yaml" \
    run.dir="$tmp/run" </dev/null >"$tmp/out" 2>&1 || code=$?
[ $code = 78 ] || fail "train: exit code $code: $(cat "$tmp/out")"
[ "$(grep -c 'near.yaml:5:3: optimizer.lerning_rate' "$tmp/out")" = 1 ] ||
    fail "train: $(cat "$tmp/out")"
grep -q '^model ' "$tmp/out" && fail "train has begun: $(cat "$tmp/out")"
[ ! -e "$tmp/run" ] || fail 'train has made run.dir'
