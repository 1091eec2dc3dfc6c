#!/bin/sh
# completion.sh - prints the completion for bash of dsv3 and its tools, made from their --help and
# from the table of keys.
#
# usage: sh scripts/completion.sh BUILD
set -eu
build=$1

# The options of a help text, each once.
options() { sed '/^Examples:/,$d' | grep -o -e '--[a-z][a-z-]*' | sort -u | tr '\n' ' '; }

commands=$("$build/dsv3" --help | sed -n '/^Commands:$/,/^$/s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' ')
cat <<END
# bash completion of dsv3; made by scripts/completion.sh
_dsv3_values() {
    case \$1 in
END
"$build/dsv3" check --reference | awk -F ' *[|] *' '
    /^## / { section = substr($0, 4) }
    /^\| `/ {
        key = section "." $2
        gsub(/`/, "", key)
        all = all key "= "
        if ($3 == "true or false") print "    " key ") echo true false ;;"
        if (sub(/^one of /, "", $3)) { gsub(/,/, "", $3); print "    " key ") echo " $3 " ;;" }
    }
    END { print "    esac\n}\n_dsv3_keys=\"" all "\"" }'
cat <<END
_dsv3() {
    local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} words= key=
    [ "\$before" = = ] && key=\${COMP_WORDS[COMP_CWORD - 2]}
    [ "\$word" = = ] && key=\$before word=
    if [ -n "\$key" ]; then
        words=\$(_dsv3_values "\$key")
    elif [ "\$COMP_CWORD" = 1 ]; then
        words="$commands--help --version"
    else
        case \${COMP_WORDS[1]} in
END
for command in $commands; do
    echo "        $command) words='$("$build/dsv3" "$command" --help | options)' ;;"
done
cat <<END
        esac
        case \$word in -*) ;; *) words="\$words \$_dsv3_keys" ;; esac
    fi
    COMPREPLY=(\$(compgen -W "\$words" -- "\$word"))
    case \${COMPREPLY[*]} in *=) compopt -o nospace ;; esac
}
complete -o default -F _dsv3 dsv3
END
for tool in "$build"/dsv3-*[a-z]; do
    name=${tool##*/}
    function=_$(echo "$name" | tr - _) help=$("$tool" --help)
    commands=$(echo "$help" | sed -n 's/^  \([a-z][a-z]*\) [A-Z].*/\1/p' | tr '\n' ' ')
    cat <<END
$function() {
    COMPREPLY=(\$(compgen -W '$commands$(echo "$help" | options)' -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F $function $name
END
done
