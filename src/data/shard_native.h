/*
 * shard_native.h - our own shards, NAME.tok.zst: the header as it lies in the file, and the writer.
 *
 *     skippable frame 0x184D2A50   struct shard_header, 256 bytes with the frame's own 8
 *     zstd frames                  64 Ki ids each but the last, u16 or u32, with checksum
 *     skippable frame 0x184D2A51   u64 frame_offset[n_frames + 1], u64 document_end[n_documents]
 *     skippable frame 0x184D2A5E   the seek table of the zstd seekable format
 *
 * `zstd -d` skips all but the ids. Everything is little-endian. document_end counts tokens from the
 * start of the shard and grows; tokens after the last end belong to a document that goes on in the
 * next shard. docs/data.md describes the file byte for byte.
 */
#pragma once

#include <stdint.h>

enum {
    SHARD_FRAME_TOKENS = 65536,
    SHARD_HEADER_BYTES = 256,
    SHARD_VERSION = 1,
    SHARD_TOKENIZER_BYTES = 64
};
#define SHARD_SUFFIX ".tok.zst"

/* The first 256 bytes of the file, as they lie there. */
struct shard_header {
    uint32_t skip_magic, skip_bytes; /* 0x184D2A50, 248 */
    char magic[8];                   /* "DSV3TOK", 0 */
    uint32_t version, id_bytes;      /* 1; 2 or 4 */
    uint64_t n_tokens, n_documents;
    uint64_t vocab_size;             /* ids are below it */
    uint32_t max_id;                 /* the largest id in the shard */
    uint32_t frame_tokens, n_frames; /* 65536; frames of ids */
    int32_t bos_id, eod_id, pad_id;  /* -1: the tokenizer has none */
    uint64_t tokenizer_hash;         /* of the tokenizer's definition */
    uint64_t content_hash;           /* XXH64 of all ids as stored */
    uint64_t offset_hash;            /* XXH64 of frame_offset[] */
    uint64_t document_hash;          /* XXH64 of document_end[] */
    uint64_t index_offset;           /* where that frame starts */
    uint64_t file_bytes;
    char tokenizer[SHARD_TOKENIZER_BYTES]; /* its name, NUL-padded */
    uint64_t text_bytes;                   /* of the text that the ids stand for; 0: not known */
    uint8_t zero[56];
    uint64_t header_hash; /* XXH64 of the 248 bytes before */
};
_Static_assert(sizeof(struct shard_header) == SHARD_HEADER_BYTES, "the header is the file's");

/* What a new shard is told of its tokenizer. */
struct shard_kind {
    uint64_t vocab_size; /* <= 2^32; up to 65536 ids take 2 bytes, otherwise 4 */
    const char *tokenizer;
    uint64_t tokenizer_hash;
    int32_t bos_id, eod_id, pad_id; /* -1: none */
    int level;                      /* of zstd, 1 .. 22 */
    const uint32_t *id_text_bytes;  /* of text that each id stands for that will be added, by id;
                                       NULL: not known. Borrowed until the writer is gone */
};

/*
 * Writes path + ".tmp". finish completes the file and syncs it; commit gives it its name, so that
 * several files can appear together, and frees the writer; discard removes it instead. A failed
 * write is fatal with CODE_IO after the temporary file is removed, an id outside the vocabulary
 * with CODE_DATA. Not for use after mem_freeze.
 */
struct shard_writer *shard_writer_init(const char *path, const struct shard_kind *kind);
void shard_writer_add(struct shard_writer *w, const uint32_t *id, int64_t n);
void shard_writer_end_document(struct shard_writer *w); /* no document is empty: then no effect */
int64_t shard_writer_tokens(const struct shard_writer *w);
void shard_writer_finish(struct shard_writer *w);
void shard_writer_commit(struct shard_writer *w);
void shard_writer_discard(struct shard_writer *w);
