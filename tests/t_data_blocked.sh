# A file system that does not answer ends the run at the deadline, with the name of the file: when
#TEST timeout=90 cores=1
# the configuration or a shard is opened, and when a step waits for a sample. A FIFO is refused.
. tests/lib_train.sh
. tests/lib_faulty.sh
make_run
deadline=$((2 * ${DSV3_TIMEOUT_SCALE:-1}))
export DSV3_DEADLINE_S=$deadline

# blocked NAME WORDS FAULTS: rank 1 of 2 is kept, or rank 0 when the faults say so.
blocked() {
    faulty "FAULTY_HOW=hang FAULTY_RANKS=1 $3" fails 74 \
        "fatal .*rank .*$2 has not ended after 0.8 x $deadline s (run.deadline_s)" "$1" 2 $small \
        train.steps=2 run.deadline_s=$deadline
}
# The longest read of a shard is that of its frame of ids.
faulty "FAULTY_CALL=read FAULTY_PATH=train.tok.zst FAULTY_RANKS=1 FAULTY_LOG=$tmp/read.log" \
    must_train reads 2 $small train.steps=2
frame=$(awk '$3 == "read" { n++; if ($4 > most) { most = $4; at = n } } END { print at }' \
    "$tmp/read.log")
later blocked config 'opening .*/run.yaml' \
    'FAULTY_CALL=open FAULTY_AT=1 FAULTY_PATH=run.yaml FAULTY_RANKS=0'
later blocked open 'opening .*/heldout.tok.zst' \
    'FAULTY_CALL=open FAULTY_AT=1 FAULTY_PATH=heldout.tok.zst'
later blocked index 'reading .*/train.tok.zst at byte [1-9][0-9]*' \
    'FAULTY_CALL=read FAULTY_AT=3 FAULTY_PATH=train.tok.zst'
later blocked frame 'reading .*/train.tok.zst at byte 256' \
    "FAULTY_CALL=read FAULTY_AT=$frame FAULTY_PATH=train.tok.zst"
finish

mkfifo "$tmp/fifo"
refused 66 'fifo: .*not a regular file but a pipe' shard 2 data.train="$tmp/fifo"
echo ok
