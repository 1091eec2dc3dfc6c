/*
 * shard_format.h - the numbers of the shard format that its writer and its reader share; the
 * description is in shard.h and docs/data.md.
 */
#pragma once

#include "data/shard.h"

#define SHARD_MAGIC "DSV3TOK"
#define SHARD_HEADER_MAGIC 0x184D2A50u   /* skippable frame: header */
#define SHARD_INDEX_MAGIC 0x184D2A51u    /* skippable frame: frame offsets, document ends */
#define SHARD_SEEK_MAGIC 0x184D2A5Eu     /* skippable frame: zstd seekable format */
#define SHARD_SEEK_END_MAGIC 0x8F92EAB1u /* the last four bytes of the file */
#define SHARD_MAX_TOKENS ((UINT64_C(1) << 32) * SHARD_FRAME_TOKENS - SHARD_FRAME_TOKENS)
enum {
    SHARD_SKIP_BYTES = 8, /* magic and size before a skippable frame's contents */
    SHARD_SEEK_ENTRY_BYTES = 8,
    SHARD_SEEK_FOOTER_BYTES = 9
};

static inline uint64_t shard_index_bytes(const struct shard_header *header)
{
    return sizeof(uint64_t) * ((uint64_t)header->n_frames + 1 + header->n_documents);
}
