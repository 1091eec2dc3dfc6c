/* shard_reads.h - everything that is done with a shard, of any format, for the fuzz targets. */
#pragma once
#include "fuzz.h"

#include "data/shard_inside.h"

enum { ENDS_AT_ONCE = 100, MODEL_VOCAB = 512 };

/* Frames into memory of just their size; every document end. Stops at the first fault. */
static inline int read_all(const struct shard *shard, struct fault *fault)
{
    static struct shard_decoder decoder;
    int bad = shard_try_check_index(shard, fault);
    if (!bad) bad = shard_try_check_ids(shard, fault);
    if (!decoder.zstd) shard_decoder_init(&decoder);
    for (int64_t i = 0; !bad && i < shard->info.n_frames; i++) {
        void *ids = malloc((size_t)shard_frame_tokens(shard, i) * shard->info.id_bytes);
        bad = shard_try_frame(shard, i, &decoder, ids, fault);
        free(ids);
    }
    for (int64_t i = 0; !bad && i < shard->info.n_documents; i += ENDS_AT_ONCE) {
        uint64_t end[ENDS_AT_ONCE];
        const int64_t left = shard->info.n_documents - i;
        const int64_t n = left < ENDS_AT_ONCE ? left : ENDS_AT_ONCE;
        bad = shard_try_document_ends(shard, i, n, end, fault);
        for (int64_t j = 0; !bad && j < n; j++)
            EXPECT(end[j] <= (uint64_t)shard->info.n_tokens && (j == 0 || end[j] >= end[j - 1]),
                   "document end %lu of %ld tokens", end[j], shard->info.n_tokens);
    }
    return bad;
}

/* A fault is one line that names the file's directory at least. */
static inline void read_shard(const char *path, enum data_format format)
{
    const struct data_source as = {.format = format, .bos_id = -1, .eod_id = 7};
    struct shard shard = {0};
    struct fault fault = {0};
    int bad = shard_try_open(&shard, path, &as, &fault);
    const bool is_open = !bad;
    if (is_open && shard.vocab > MODEL_VOCAB) shard.vocab = MODEL_VOCAB;
    if (is_open) bad = read_all(&shard, &fault);
    if (is_open) shard_close(&shard);
    EXPECT(!bad || fault.code == CODE_DATA || fault.code == CODE_NO_INPUT, "code %d", fault.code);
    EXPECT(!bad || (strstr(fault.why, fuzz_dir) && !strchr(fault.why, '\n')), "said %s", fault.why);
}
