# What looks like a boolean or a number stays the text it is where a text belongs, and a switch
#TEST timeout=30
# takes true and false alone: no spelling turns silently into something else.
. tests/lib_check.sh

for text in no on y 1e5 0x10 true 012 1:30; do
    write text <<YAML
run: {dir: $text}
data: {train: [$text, $text.tok.zst]}
YAML
    accepts text 'n_routed_experts'
    # Read back, the printed value is still the text.
    sed '/^config hash/,$d' "$tmp/out" >"$tmp/again.yaml"
    perl -ne "\$n += () = /(?<![\\w.])[\"']?\Q$text\E[\"']?(?![\\w.])/g if /^ +(dir|train):/;
        END { exit(\$n == 2 ? 0 : 1) }" "$tmp/out" ||
        fail "text $text: $(grep -E '^ +(dir|train):' "$tmp/out")"
    hash=$(grep '^config hash' "$tmp/out")
    check again || fail "text $text: $(cat "$tmp/err")"
    [ "$(grep '^config hash' "$tmp/out")" = "$hash" ] || fail "text $text reads back differently"
done

for yes in yes Yes on y Y TRUE True 1 '"true"' "'true'" Off no n 0 nope; do
    write switch <<YAML
run:
  dir: x
  overwrite: $yes
data: {train: x.tok.zst}
YAML
    refuses switch '4:14: run.overwrite: found '
    grep -q 'expected true or false' "$tmp/err" || fail "$yes: $(cat "$tmp/err")"
done
for value in true false; do
    write switch <<YAML
run: {dir: x, overwrite: $value}
data: {train: x.tok.zst}
YAML
    accepts switch "overwrite: $value"
done
grep -q '`true` and `false`; `yes`, `on`, `1` are refused' docs/config.md || fail 'not documented'
