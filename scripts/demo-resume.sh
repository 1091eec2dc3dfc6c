# demo-resume.sh - the second half of `sh scripts/demo.sh resume`, read by that: the demo once more,
# asked to stop halfway (as a batch system does) and gone on with half as many ranks; then both loss
# curves. They are the same training: only the order of sums differs.
half=$((ranks / 2)) again=$run-resumed
[ -s "$run/checkpoints/latest/manifest.json" ] || train $ranks $run $anew

rm -rf "$again"
echo
echo "The same again, with a signal (SIGUSR1) halfway:"
{ then=exec && train $ranks "$again"; } &
pid=$!
steps() {
    n=$(grep -c '"loss":' "$again/metrics.jsonl" 2>/dev/null) || :
    echo "${n:-0}"
}
wanted=$(($(grep -c '"loss":' "$run/metrics.jsonl") / 2))
while kill -0 $pid 2>/dev/null && [ "$(steps)" -lt $wanted ]; do sleep 0.2; done
kill -USR1 $pid || :
code=0
wait $pid || code=$?
[ $code = 75 ] || { echo "demo-resume: exit code $code, expected 75" >&2 && exit 1; }
stopped=$(steps)
echo "stopped after step $stopped with exit code 75: saved, run me again"

echo
echo "On with $half ranks instead of $ranks:"
train $half "$again"

# step and loss of every training step
losses() {
    sed -n 's/^{"step":\([0-9]*\),.*"loss":\([-+.0-9e]*\),"mtp_loss.*/\1 \2/p' "$1/metrics.jsonl"
}
losses $run >"$again/curve-whole"
losses "$again" >"$again/curve-resumed"
echo
echo "Loss of the run in one piece (|), of the one in two (o), of both (*):"
echo
paste -d ' ' "$again/curve-whole" "$again/curve-resumed" | awk -v stopped="$stopped" '
    { step[NR] = $1; whole[NR] = $2; parts[NR] = $4
      d = $2 > $4 ? $2 - $4 : $4 - $2
      if (d > most) most = d
      if (NR == 1) first = $2 }
    END {
        low = 1e9
        for (i = 1; i <= NR; i++) low = whole[i] < low ? whole[i] : low
        for (i = 1; i <= NR; i += i < 20 ? 4 : 12) {
            a = int(60 * (whole[i] - low) / (first - low) + 0.5)
            b = int(60 * (parts[i] - low) / (first - low) + 0.5)
            line = ""
            for (x = 0; x <= 60; x++)
                line = line (x == a && x == b ? "*" : x == a ? "|" : x == b ? "o" : " ")
            mark = i > stopped && !marked++ ? "  <- resumed on other ranks" : ""
            printf "%5d  %.5f  %.5f %s%s\n", step[i], whole[i], parts[i], line, mark
        }
        printf "\nlargest difference of %d steps: %.2g\n", NR, most
    }'
