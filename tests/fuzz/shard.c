/*
 * shard.c - fuzz target: a token shard of one file, read as training reads it, in every format.
 * Hashes keep mutated bytes from the code behind them, so a native shard is tried as it is and with
 * its hashes made right.
 */
#include "shard_reads.h"

#include <xxhash.h>

/* Hashes of the index, where it lies inside the file, then that of the header. */
static void mend(uint8_t *bytes, size_t n)
{
    struct shard_header h;
    memcpy(&h, bytes, sizeof h);
    const uint64_t at = h.index_offset + SHARD_SKIP_BYTES;
    const uint64_t n_offsets = (uint64_t)h.n_frames + 1;
    if (at < n && n_offsets <= (n - at) / 8) {
        h.offset_hash = XXH64(bytes + at, n_offsets * 8, 0);
        if (h.n_documents <= (n - at) / 8 - n_offsets)
            h.document_hash = XXH64(bytes + at + n_offsets * 8, h.n_documents * 8, 0);
    }
    h.header_hash = XXH64(&h, offsetof(struct shard_header, header_hash), 0);
    memcpy(bytes, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const enum data_format formats[] = {DATA_FORMAT_AUTO, DATA_FORMAT_NATIVE,
                                               DATA_FORMAT_LLMC, DATA_FORMAT_NPY,
                                               DATA_FORMAT_U16,  DATA_FORMAT_U32};
    const char *path = fuzz_file("shard", bytes, n);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) read_shard(path, formats[i]);
    if (n < sizeof(struct shard_header)) return 0;
    uint8_t *mended = malloc(n);
    memcpy(mended, bytes, n);
    mend(mended, n);
    read_shard(fuzz_file("shard", mended, n), DATA_FORMAT_NATIVE);
    free(mended);
    return 0;
}
