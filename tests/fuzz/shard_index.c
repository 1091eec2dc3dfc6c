/*
 * shard_index.c - fuzz target: the files beside a shard that list its documents. The ids are 64 of
 * two bytes; the input is their Megatron .idx, datatrove .metadata and datatrove .index in turn.
 */
#include "shard_reads.h"

enum { N_IDS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char metadata[] = "gpt2|2\n64\n";
    static const uint64_t ends[] = {10, 10, N_IDS};
    uint16_t ids[N_IDS];
    for (int i = 0; i < N_IDS; i++) ids[i] = (uint16_t)(i % 9);

    fuzz_file("megatron.idx", bytes, n);
    read_shard(fuzz_file("megatron.bin", ids, sizeof ids), DATA_FORMAT_MEGATRON);
    fuzz_file("documents.ds.metadata", bytes, n);
    fuzz_file("documents.ds.index", ends, sizeof ends);
    read_shard(fuzz_file("documents.ds", ids, sizeof ids), DATA_FORMAT_DATATROVE);
    fuzz_file("documents.ds.metadata", metadata, sizeof metadata - 1);
    fuzz_file("documents.ds.index", bytes, n);
    read_shard(fuzz_file("documents.ds", ids, sizeof ids), DATA_FORMAT_DATATROVE);
    return 0;
}
