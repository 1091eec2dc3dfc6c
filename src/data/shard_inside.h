/*
 * shard_inside.h - what the files that read a format share: the table of a format's functions,
 * reading with messages, ids of any integer type. Private to src/data/shard*.c.
 */
#pragma once

#include "data/shard.h"

#include <stddef.h>

/* The functions of a format. try_open finds fd open and info with file_bytes and -1 or 0 for what
 * no file has told yet. */
struct shard_format {
    const char *name;
    int (*try_open)(struct shard *shard, const struct data_source *as, struct fault *fault);
    int (*try_check_index)(const struct shard *shard, struct fault *fault); /* NULL: none */
    int (*try_document_ends)(const struct shard *shard, int64_t first, int64_t n, uint64_t *end,
                             struct fault *fault); /* NULL: none are listed */
    int (*try_frame)(const struct shard *shard, int64_t frame, struct shard_decoder *dec, void *ids,
                     struct fault *fault);
};
extern const struct shard_format shard_native, shard_megatron, shard_datatrove, shard_llmc,
    shard_npy, shard_u16, shard_u32;

/* Ids as they lie in flat files. */
enum id_type { ID_U8, ID_I8, ID_U16, ID_I16, ID_U32, ID_I32, ID_U64, ID_I64 };
int id_type_bytes(int type);

/* Sets what follows from where the ids begin, their type and their number; then file_bytes must be
 * where they end. try_frame of all flat formats. */
int flat_try_init(struct shard *shard, uint64_t ids_at, enum id_type type, uint64_t n_tokens,
                  struct fault *fault);
int flat_try_frame(const struct shard *shard, int64_t frame, struct shard_decoder *dec, void *ids,
                   struct fault *fault);
/* Takes the stated ids that begin and end documents, or else those given. */
void flat_set_documents(struct shard *shard, const struct data_source *as, int bos_id, int eod_id);

/* What a file that is to hold nothing but ids looks like by its first bytes, for a message: "a
 * NumPy file: format npy reads it"; NULL: like ids. */
const char *shard_looks_like(const struct shard *shard);
/* Whether the ids of a frame, of a file that does not tell their type, are of this type. */
int shard_try_check_width(const struct shard *shard, int64_t frame, const void *ids,
                          struct fault *fault);

/* Of n ids of a frame. */
uint32_t shard_largest_id(const void *ids, uint32_t id_bytes, int64_t n);

/* Reads bytes at offset of the shard's file, or of the one beside it (index). */
int shard_try_read(const struct shard *shard, bool index, void *to, size_t bytes, uint64_t offset,
                   struct fault *fault);
/* Opens the file beside it that has another suffix instead of the last cut characters of its path:
 * sets index_fd, index_path and *bytes. 1: there is no such file. */
int shard_try_open_beside(struct shard *shard, size_t cut, const char *suffix, uint64_t *bytes,
                          struct fault *fault);
/* Hash of the size and of the first, middle and last 4 KiB of a file. */
int shard_try_sample_hash(const struct shard *shard, bool index, uint64_t bytes, uint64_t *hash,
                          struct fault *fault);

/* One line per field that must have a certain value. */
int shard_try_expect(const char *path, const char *field, uint64_t offset, uint64_t found,
                     uint64_t expected, struct fault *fault);

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
