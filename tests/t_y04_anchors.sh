# Anchors, aliases and merge keys, which this YAML parser hands on as ordinary text, are refused by
#TEST timeout=30
# name and line: never ignored, never followed, however deep.
. tests/lib_check.sh

write merge <<'YAML'
run: &base
  dir: x
data: {train: x.tok.zst}
train:
  <<: *base
  steps: 7
optimizer: *base
YAML
refuses merge '2:6: anchor &base: anchors, aliases and merge keys are refused; use base: FILE'
refuses merge '6:3: merge key <<: refused; use base: FILE'
refuses merge '6:7: alias *base'
refuses merge '8:12: alias *base'

write plain <<'YAML'
run: {dir: x}
data: {train: x.tok.zst}
train:
  <<: {steps: 7}
YAML
refuses plain '5:3: merge key <<: refused'

write recursive <<'YAML'
run: &run
  dir: *run
data: {train: x.tok.zst}
YAML
refuses recursive '3:8: alias *run'

# Ten levels of nine would be 3.5 thousand million values.
{
    echo 'a0: &a0 [x, x, x, x, x, x, x, x, x]'
    for i in 1 2 3 4 5 6 7 8 9; do
        b=$((i - 1))
        echo "a$i: &a$i [*a$b, *a$b, *a$b, *a$b, *a$b, *a$b, *a$b, *a$b, *a$b]"
    done
} | write bomb
begin=$(date +%s)
refuses bomb '2:5: anchor &a0'
[ $(($(date +%s) - begin)) -lt 5 ] || fail 'an alias bomb takes long'
[ "$(wc -l <"$tmp/err")" -le 102 ] || fail "$(wc -l <"$tmp/err") lines for an alias bomb"
