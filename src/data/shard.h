/*
 * shard.h - one file of token ids, of any format that is read: opening it, its frames of ids, where
 * its documents end. Every format is a struct shard_format; what differs between them ends here.
 *
 *     native      NAME.tok.zst           shard_native.c, written by shard_write.c (shard_native.h)
 *     megatron    NAME.bin, NAME.idx     shard_megatron.c
 *     datatrove   NAME.ds[.index]        shard_datatrove.c
 *     llmc, npy, u16, u32                shard_flat.c: a header at most, and the ids
 *
 * docs/data.md describes the files byte for byte, and what is checked.
 *
 * What a user's file can get wrong is reported, not fatal: functions with _try_ return 0, or -1
 * with a struct fault whose text names file, offset, found and expected.
 */
#pragma once

#include "base/err.h"
#include "config/config.h"
#include "data/shard_native.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shards are read as they lie");

/* What every format tells of its file. */
struct shard_info {
    uint32_t id_bytes; /* 2 or 4, of the ids that shard_try_frame gives */
    int64_t n_tokens, n_frames;
    int64_t n_documents; /* whose ends the file lists; the others are found by their ids */
    uint64_t vocab_size; /* ids are below it; 0: the file does not tell */
    int64_t max_id;      /* the largest id; -1: the file does not tell */
    int32_t bos_id, eod_id, pad_id; /* -1: none, or the file does not tell */
    bool by_id;                     /* documents begin with each bos_id and end with each eod_id */
    char tokenizer[SHARD_TOKENIZER_BYTES];
    uint64_t tokenizer_hash;              /* 0: the file does not tell */
    uint64_t text_bytes;                  /* that the ids stand for; 0: the file does not tell */
    uint64_t content_hash, document_hash; /* of ids and document ends, or of samples of them */
    uint64_t file_bytes;
};

struct shard_format;

/* An open shard; zero it before the first use. Reading it is thread-safe. */
struct shard {
    int fd;
    const char *path; /* borrowed */
    int index_fd;     /* of the file beside it that lists documents; -1: none */
    char *index_path;
    const struct shard_format *format;
    struct shard_info info;
    uint64_t vocab; /* ids must be below it; the shard's own, or 2^32, until the model's is set */
    union {
        struct shard_header header; /* native */
        struct {
            uint64_t ids_at;      /* where the ids begin */
            int id_type;          /* enum id_type of shard_inside.h */
            uint64_t n_sequences; /* megatron */
        } flat;
    };
};

/* Opens and checks header, sizes, and that the parts lie where they should. as: the format and the
 * ids that begin and end documents, as far as they are stated; NULL: nothing is. */
int shard_try_open(struct shard *shard, const char *path, const struct data_source *as,
                   struct fault *fault);
void shard_close(struct shard *shard);

/* Reads the whole index: offsets, document ends, hashes. Costs 8 to 24 bytes a document. */
int shard_try_check_index(const struct shard *shard, struct fault *fault);

/* Formats that do not tell their largest id: looks for ids beyond vocab, and for a wrong width or
 * byte order, in the first, the middle and the last frame. */
int shard_try_check_ids(const struct shard *shard, struct fault *fault);

/* Document ends first .. first + n - 1, of those that the file lists: tokens from the start of the
 * shard, never falling. Tokens after the last end belong to a document that goes on in the next
 * shard. */
int shard_try_document_ends(const struct shard *shard, int64_t first, int64_t n, uint64_t *end,
                            struct fault *fault);

/* What decoding needs; one per thread. */
struct shard_decoder {
    void *zstd, *packed;
};
void shard_decoder_init(struct shard_decoder *dec);
void shard_decoder_free(struct shard_decoder *dec);

static inline int64_t shard_frame_tokens(const struct shard *shard, int64_t frame)
{
    const int64_t left = shard->info.n_tokens - frame * SHARD_FRAME_TOKENS;
    return left < SHARD_FRAME_TOKENS ? left : SHARD_FRAME_TOKENS;
}

/* Reads a frame into ids [shard_frame_tokens] of info.id_bytes each and checks every id. */
int shard_try_frame(const struct shard *shard, int64_t frame, struct shard_decoder *dec, void *ids,
                    struct fault *fault);

/* ids[i] of a decoded frame. */
static inline uint32_t shard_id(const void *ids, uint32_t id_bytes, int64_t i)
{
    return id_bytes == 2 ? ((const uint16_t *)ids)[i] : ((const uint32_t *)ids)[i];
}

/* Hash of what a reader sees of a shard, whatever its name and compression, chained to that of the
 * shards before (0 at first). */
uint64_t shard_fingerprint(const struct shard *shard, uint64_t before);

/* Whether a file of a directory is taken for a shard by its name. */
bool shard_is_name(const char *name, enum data_format format);
const char *shard_names(enum data_format format); /* "*.u16 *.bin", for messages */
const char *shard_format_name(const struct shard *shard);
/* By that name; false: there is none. */
bool shard_find_format(const char *name, enum data_format *format);
