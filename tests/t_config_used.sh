# No key is parsed and then ignored: the field of every key is read somewhere outside src/config.
#TEST timeout=30
set -eu
failed=0
# Only a limit that the configuration itself checks.
checked_only=' max_position_embeddings '

fields=$(sed -n '/^const struct key config_keys/,/^};/p' src/config/keys.c |
    sed 's/"[^"]*"//g' | grep -oE '\<(run|topology|data|model|train|optimizer|debug)\.[a-z_0-9]+' |
    cut -d. -f2 | sort -u)
n=$(echo "$fields" | wc -l)
[ "$n" -gt 70 ] || { echo "only $n fields found in keys.c"; failed=1; }
for field in $fields; do
    case $checked_only in *" $field "*) continue ;; esac
    grep -rqE "(->|\.)$field\>" --include='*.c' --include='*.h' --exclude-dir=config src || {
        echo "$field: parsed, but nothing reads it"
        failed=1
    }
done
exit $failed
