# dsv3 report: a page of pictures from metrics.jsonl, with what is not a number, marks and a line
#TEST timeout=60
# that is cut off; two runs in one page; what is no run. In a browser where there is one.
. tests/lib_test.sh

# make_run NAME STEPS: losses that fall, a restart after step 10, a skipped step 20, a rollback.
make_run() {
    mkdir -p "$tmp/$1"
    awk -v steps="$2" 'BEGIN {
        identity = "{\"version\":\"v<1>\",\"mesh\":{\"ranks\":2,\"dp\":2,\"tp\":1,\"ep\":1}," \
            "\"params\":{\"total\":1234567,\"active\":1000}"
        print identity "}"
        for (s = 1; s <= steps; s++) {
            if (s == 11) print identity ",\"resumed_step\":10}"
            if (s == 30) print "{\"rollback\":1,\"step\":25}"
            bad = (s == 20)
            printf "{\"step\":%d,\"tokens\":%d,\"loss\":%s,\"mtp_loss\":%g,\"grad_norm\":%s,", s, \
                s * 256, bad ? "null" : 2 + 4 / s, 3 + 4 / s, bad ? "null" : 10 / s
            printf "\"skipped\":%d,\"lr\":%g,\"tok_s\":%g,\"bias_min\":%g,\"bias_max\":%g,", \
                (s >= 20), 0.001 * s, 900 + s, -0.001 * s, 0.001 * s
            printf "\"expert_load\":[%g,1.5]}\n", 1 + 1 / s
            if (s % 10 == 0) print "{\"step\":" s ",\"eval_loss\":" 2.5 + 4 / s "}"
            if (s % 15 == 0) print "{\"step\":" s ",\"ckpt_stall_s\":0.01}"
        }
        printf "{\"step\":%d,\"lo", steps + 1 }' >"$tmp/$1/metrics.jsonl"
}
# is NAME WHAT COUNT: how often WHAT is in the page
is() {
    n=$(grep -o -e "$2" "$tmp/$1" | wc -l)
    [ "$n" = "$3" ] || fail "$1: '$2' $n times, expected $3"
}
make_run short 50
make_run long 5000
"$dsv3" report "$tmp/short" >"$tmp/out" || fail "exit code $?"
[ "$(cat "$tmp/out")" = "$tmp/short/report.html" ] || fail "$(cat "$tmp/out")"
page=short/report.html
is $page '<svg ' 8
is $page '</svg>' 8
is $page '<title>resumed, step 10</title>' 7
is $page '<title>step skipped, step 20</title>' 7
is $page '<title>rolled back, step 25</title>' 7
is $page '<rect class=' 100
is $page 'v&lt;1&gt;' 1
is $page 'class="band' 0
is $page '<td>1,234,567</td>' 1
! grep -n '[^a-z]nan\|[^a-z]inf[^o]' "$tmp/$page" || fail 'a number that is not finite is drawn'
"$dsv3" report "$tmp/short" "$tmp/long" --out "$tmp/both.html" >"$tmp/out" || fail "exit code $?"
is both.html '<svg ' 9
is both.html '<title>resumed, step 10</title>' 14
is both.html 'class="band' 8
size=$(wc -c <"$tmp/both.html")
[ "$size" -lt 400000 ] || fail "$size bytes for 5,000 steps"

# wrong CODE WORDS ARGUMENT...
wrong() {
    want=$1 words=$2 code=0
    shift 2
    "$dsv3" report "$@" >"$tmp/out" 2>&1 || code=$?
    [ $code = "$want" ] && grep -q "$words" "$tmp/out" || fail "report $*: $code: $(cat "$tmp/out")"
}
mkdir "$tmp/bad" "$tmp/empty"
printf '{"version":"1"}\n{"step":1 oops}\n' >"$tmp/bad/metrics.jsonl"
printf '{"version":"1"}\n' >"$tmp/empty/metrics.jsonl"
wrong 65 'bad/metrics.jsonl:2: expected a JSON object' "$tmp/bad"
wrong 65 'it has no step' "$tmp/empty"
wrong 66 'none/metrics.jsonl: No such file' "$tmp/none"
wrong 64 'no RUN'
wrong 74 'cannot write' "$tmp/short" --out "$tmp/none/page.html"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || :)
if [ -n "$browser" ]; then
    "$browser" --headless --no-sandbox --disable-gpu --dump-dom "file://$tmp/both.html" \
        >"$tmp/dom.html" 2>/dev/null || fail "$browser: exit code $?"
    is dom.html '<svg ' 9
    is dom.html '<path class="line' "$(grep -o '<path class="line' "$tmp/both.html" | wc -l)"
fi
echo ok
