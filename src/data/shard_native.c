/* shard_native.c - opening, checking and decoding our own shards; the format is in
 * shard_native.h. */
#include "data/shard_inside.h"

#include <string.h>
#include <xxhash.h>
#include <zstd.h>

enum { CHUNK = 2048 }; /* u64s read at once; the buffers lie on the stack */

#define EXPECT_FIELD(field, value)                                                                 \
    if (shard_try_expect(shard->path, #field, offsetof(struct shard_header, field),                \
                         shard->header.field, value, fault) != 0)                                  \
    return -1

static int check_header(const struct shard *shard, struct fault *fault)
{
    const struct shard_header *h = &shard->header;

    if (h->skip_magic != SHARD_HEADER_MAGIC || memcmp(h->magic, SHARD_MAGIC, sizeof h->magic) != 0)
        return fault_set(
            fault, CODE_DATA,
            "%s: not a token shard: bytes 0 .. 3 are 0x%08x and bytes 8 .. 15 \"%.8s\", expected "
            "0x%08x and \"%s\"; dsv3-tokenize makes shards",
            shard->path, h->skip_magic, h->magic, SHARD_HEADER_MAGIC, SHARD_MAGIC);
    EXPECT_FIELD(version, SHARD_VERSION);
    EXPECT_FIELD(header_hash, XXH64(h, offsetof(struct shard_header, header_hash), 0));
    EXPECT_FIELD(skip_bytes, SHARD_HEADER_BYTES - SHARD_SKIP_BYTES);
    EXPECT_FIELD(id_bytes, h->id_bytes == 4 ? 4 : 2);
    EXPECT_FIELD(frame_tokens, SHARD_FRAME_TOKENS);
    if (h->n_tokens == 0)
        return fault_set(fault, CODE_DATA, "%s: 0 tokens found, a shard has at least 1",
                         shard->path);
    if (h->n_documents > h->n_tokens || h->n_tokens > SHARD_MAX_TOKENS)
        return fault_set(fault, CODE_DATA,
                         "%s: %lu tokens in %lu documents, expected at most %lu tokens and no "
                         "more documents than tokens",
                         shard->path, (unsigned long)h->n_tokens, (unsigned long)h->n_documents,
                         (unsigned long)SHARD_MAX_TOKENS);
    EXPECT_FIELD(n_frames, (h->n_tokens + SHARD_FRAME_TOKENS - 1) / SHARD_FRAME_TOKENS);
    if (h->max_id >= h->vocab_size)
        return fault_set(fault, CODE_DATA,
                         "%s: largest id %u at byte %zu is outside its vocabulary of %lu",
                         shard->path, h->max_id, offsetof(struct shard_header, max_id),
                         (unsigned long)h->vocab_size);
    return 0;
}

/* Index and seek table must lie one behind the other up to the end of the file. */
static int check_places(const struct shard *shard, struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const uint64_t n_entries = (uint64_t)h->n_frames + 2;
    const uint64_t index_bytes = shard_index_bytes(h);
    const uint64_t seek_at = h->index_offset + SHARD_SKIP_BYTES + index_bytes;
    const uint64_t seek_bytes = n_entries * SHARD_SEEK_ENTRY_BYTES + SHARD_SEEK_FOOTER_BYTES;
    uint32_t skip[2], footer_n, footer_magic;
    uint8_t footer[SHARD_SEEK_FOOTER_BYTES];

    if (h->index_offset >= h->file_bytes)
        return fault_set(fault, CODE_DATA, "%s: index at byte %lu of %lu", shard->path,
                         (unsigned long)h->index_offset, (unsigned long)h->file_bytes);
    EXPECT_FIELD(file_bytes, seek_at + SHARD_SKIP_BYTES + seek_bytes);
    if (shard_try_read(shard, false, skip, sizeof skip, h->index_offset, fault) != 0 ||
        shard_try_expect(shard->path, "index frame", h->index_offset, skip[0], SHARD_INDEX_MAGIC,
                         fault) != 0 ||
        shard_try_expect(shard->path, "index size", h->index_offset + 4, skip[1], index_bytes,
                         fault) != 0 ||
        shard_try_read(shard, false, skip, sizeof skip, seek_at, fault) != 0 ||
        shard_try_expect(shard->path, "seek table", seek_at, skip[0], SHARD_SEEK_MAGIC, fault) !=
            0 ||
        shard_try_expect(shard->path, "seek table size", seek_at + 4, skip[1], seek_bytes, fault) !=
            0)
        return -1;
    const uint64_t footer_at = h->file_bytes - SHARD_SEEK_FOOTER_BYTES;
    if (shard_try_read(shard, false, footer, sizeof footer, footer_at, fault) != 0) return -1;
    memcpy(&footer_n, footer, sizeof footer_n);
    memcpy(&footer_magic, footer + 5, sizeof footer_magic);
    if (shard_try_expect(shard->path, "seek table entries", footer_at, footer_n, n_entries,
                         fault) != 0 ||
        shard_try_expect(shard->path, "seek table flags", footer_at + 4, footer[4], 0, fault) != 0)
        return -1;
    return shard_try_expect(shard->path, "seek table end", footer_at + 5, footer_magic,
                            SHARD_SEEK_END_MAGIC, fault);
}

static void fill_info(struct shard *shard)
{
    const struct shard_header *h = &shard->header;
    struct shard_info *info = &shard->info;

    info->id_bytes = h->id_bytes;
    info->n_tokens = (int64_t)h->n_tokens;
    info->n_frames = h->n_frames;
    info->n_documents = (int64_t)h->n_documents;
    info->vocab_size = h->vocab_size;
    info->max_id = h->max_id;
    info->bos_id = h->bos_id;
    info->eod_id = h->eod_id;
    info->pad_id = h->pad_id;
    memcpy(info->tokenizer, h->tokenizer, sizeof h->tokenizer - 1);
    info->tokenizer_hash = h->tokenizer_hash;
    info->text_bytes = h->text_bytes;
    info->content_hash = h->content_hash;
    info->document_hash = h->document_hash;
    shard->vocab = h->vocab_size;
}

static int native_try_open(struct shard *shard, const struct data_source *as, struct fault *fault)
{
    const uint64_t bytes = shard->info.file_bytes;

    (void)as; /* the file tells all of it */
    if (bytes < SHARD_HEADER_BYTES)
        return fault_set(fault, CODE_DATA, "%s: %lu bytes found, a shard has at least %d",
                         shard->path, (unsigned long)bytes, SHARD_HEADER_BYTES);
    if (shard_try_read(shard, false, &shard->header, sizeof shard->header, 0, fault) != 0 ||
        check_header(shard, fault) != 0)
        return -1;
    fill_info(shard);
    if (shard->header.file_bytes != bytes)
        return fault_set(
            fault, CODE_DATA,
            "%s: truncated or altered: %lu bytes found, expected %lu (header, byte %zu)",
            shard->path, (unsigned long)bytes, (unsigned long)shard->header.file_bytes,
            offsetof(struct shard_header, file_bytes));
    return check_places(shard, fault);
}

/* One piece of the frame offsets and of the sizes that the seek table gives for them. */
static int check_frames(const struct shard *shard, int64_t first, int n, XXH64_state_t *hash,
                        struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const uint64_t index_at = h->index_offset + SHARD_SKIP_BYTES;
    const uint64_t place = index_at + 8 * (uint64_t)first;
    /* the seek table's first entry is the header's frame */
    const uint64_t seek_place = index_at + shard_index_bytes(h) + SHARD_SKIP_BYTES +
                                (uint64_t)(first + 1) * SHARD_SEEK_ENTRY_BYTES;
    uint64_t offset[CHUNK + 1];
    uint32_t entry[CHUNK][2];

    if (shard_try_read(shard, false, offset, (size_t)(n + 1) * sizeof *offset, place, fault) != 0 ||
        shard_try_read(shard, false, entry, (size_t)n * sizeof *entry, seek_place, fault) != 0)
        return -1;
    XXH64_update(hash, offset, (size_t)n * sizeof *offset);
    for (int i = 0; i < n; i++) {
        const uint64_t at = seek_place + 8 * (uint64_t)i;
        const uint64_t bytes = (uint64_t)shard_frame_tokens(shard, first + i) * h->id_bytes;
        if (shard_try_expect(shard->path, "frame size in the seek table", at, entry[i][0],
                             offset[i + 1] - offset[i], fault) != 0 ||
            shard_try_expect(shard->path, "bytes of ids in the seek table", at + 4, entry[i][1],
                             bytes, fault) != 0)
            return -1;
    }
    return 0;
}

/* The seek table's entry of a frame without ids. */
static int check_skippable(const struct shard *shard, uint64_t i, uint64_t bytes,
                           struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const uint64_t place = h->index_offset + SHARD_SKIP_BYTES + shard_index_bytes(h) +
                           SHARD_SKIP_BYTES + i * SHARD_SEEK_ENTRY_BYTES;
    uint32_t entry[2];

    if (shard_try_read(shard, false, entry, sizeof entry, place, fault) != 0 ||
        shard_try_expect(shard->path, "size in the seek table", place, entry[0], bytes, fault) != 0)
        return -1;
    return shard_try_expect(shard->path, "bytes of ids in the seek table", place + 4, entry[1], 0,
                            fault);
}

static int check_offsets(const struct shard *shard, XXH64_state_t *hash, struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const uint64_t index_at = h->index_offset + SHARD_SKIP_BYTES;
    uint64_t end;

    XXH64_reset(hash, 0);
    for (int64_t first = 0; first < h->n_frames; first += CHUNK) {
        const int n = h->n_frames - first < CHUNK ? (int)(h->n_frames - first) : CHUNK;
        if (check_frames(shard, first, n, hash, fault) != 0) return -1;
    }
    if (shard_try_read(shard, false, &end, sizeof end, index_at + 8 * (uint64_t)h->n_frames,
                       fault) != 0 ||
        check_skippable(shard, 0, SHARD_HEADER_BYTES, fault) != 0 ||
        check_skippable(shard, h->n_frames + 1, shard_index_bytes(h) + SHARD_SKIP_BYTES, fault) !=
            0)
        return -1;
    XXH64_update(hash, &end, sizeof end);
    return shard_try_expect(shard->path, "hash of the frame offsets", index_at, XXH64_digest(hash),
                            h->offset_hash, fault);
}

static int native_try_document_ends(const struct shard *shard, int64_t first, int64_t n,
                                    uint64_t *end, struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const uint64_t at = h->index_offset + SHARD_SKIP_BYTES +
                        sizeof(uint64_t) * ((uint64_t)h->n_frames + 1 + (uint64_t)first);
    uint64_t before = 0;

    if (shard_try_read(shard, false, end, (size_t)n * sizeof *end, at, fault) != 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        if (end[i] <= before || end[i] > h->n_tokens)
            return fault_set(
                fault, CODE_DATA,
                "%s: document end %ld at byte %lu is token %lu, expected more than %lu and at "
                "most %lu",
                shard->path, (long)(first + i), (unsigned long)(at + sizeof *end * (uint64_t)i),
                (unsigned long)end[i], (unsigned long)before, (unsigned long)h->n_tokens);
        before = end[i];
    }
    return 0;
}

static int check_documents(const struct shard *shard, XXH64_state_t *hash, struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const int64_t n_documents = (int64_t)h->n_documents;
    uint64_t end[CHUNK + 1];

    XXH64_reset(hash, 0);
    /* Each piece begins with the last end of the one before, so that those two are compared too. */
    for (int64_t first = 0; first < n_documents; first += CHUNK) {
        const int64_t from = first > 0 ? first - 1 : 0;
        const int64_t n = n_documents - first < CHUNK ? n_documents - first : CHUNK;
        if (native_try_document_ends(shard, from, first + n - from, end, fault) != 0) return -1;
        XXH64_update(hash, end + (first - from), (size_t)n * sizeof *end);
    }
    return shard_try_expect(shard->path, "hash of the document ends",
                            h->index_offset + SHARD_SKIP_BYTES + 8 * ((uint64_t)h->n_frames + 1),
                            XXH64_digest(hash), h->document_hash, fault);
}

static int native_try_check_index(const struct shard *shard, struct fault *fault)
{
    XXH64_state_t *hash = XXH64_createState();
    CHECK(hash, "no memory for a hash");
    const bool ok =
        check_offsets(shard, hash, fault) == 0 && check_documents(shard, hash, fault) == 0;
    XXH64_freeState(hash);
    return ok ? 0 : -1;
}

/* Two separate loops, so that each is a plain maximum that vectorises. */
uint32_t shard_largest_id(const void *ids, uint32_t id_bytes, int64_t n)
{
    if (id_bytes == 2) {
        const uint16_t *p = ids;
        uint16_t max = 0;
        for (int64_t i = 0; i < n; i++) max = p[i] > max ? p[i] : max;
        return max;
    }
    const uint32_t *p = ids;
    uint32_t max = 0;
    for (int64_t i = 0; i < n; i++) max = p[i] > max ? p[i] : max;
    return max;
}

/* Whether id is among ids; likewise. */
static bool has_id(const void *ids, uint32_t id_bytes, int64_t n, uint32_t id)
{
    bool found = false;
    if (id_bytes == 2) {
        const uint16_t *p = ids;
        for (int64_t i = 0; i < n; i++) found |= p[i] == id;
        return found;
    }
    const uint32_t *p = ids;
    for (int64_t i = 0; i < n; i++) found |= p[i] == id;
    return found;
}

/* Padding would be trained on and steer the router. A tokenizer whose padding is its
 * end-of-document or begin id has text there. */
static int check_padding(const struct shard *shard, int64_t frame, uint64_t offset, const void *ids,
                         struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const int64_t n = shard_frame_tokens(shard, frame);
    const uint32_t pad = (uint32_t)h->pad_id;
    int64_t i = 0;

    if (h->pad_id < 0 || h->pad_id == h->eod_id || h->pad_id == h->bos_id) return 0;
    if (!has_id(ids, h->id_bytes, n, pad)) return 0;
    while (shard_id(ids, h->id_bytes, i) != pad) i++;
    return fault_set(fault, CODE_DATA,
                     "%s: token %ld (in frame %ld at byte %lu) is %u, the tokenizer's "
                     "padding id, expected no padding: samples are cut from one stream",
                     shard->path, (long)(frame * SHARD_FRAME_TOKENS + i), (long)frame,
                     (unsigned long)offset, pad);
}

static int check_ids(const struct shard *shard, int64_t frame, uint64_t offset, const void *ids,
                     struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const int64_t n = shard_frame_tokens(shard, frame);
    int64_t i = 0;

    if (shard_largest_id(ids, h->id_bytes, n) <= h->max_id)
        return check_padding(shard, frame, offset, ids, fault);
    while (shard_id(ids, h->id_bytes, i) <= h->max_id) i++;
    return fault_set(
        fault, CODE_DATA,
        "%s: token %ld (in frame %ld at byte %lu) is id %u, vocabulary %lu, largest id by the "
        "header %u",
        shard->path, (long)(frame * SHARD_FRAME_TOKENS + i), (long)frame, (unsigned long)offset,
        shard_id(ids, h->id_bytes, i), (unsigned long)shard->vocab, h->max_id);
}

/* Where the frame lies by the index, and its packed bytes. */
static int read_frame(const struct shard *shard, int64_t frame, void *packed, uint64_t offset[2],
                      struct fault *fault)
{
    const struct shard_header *h = &shard->header;
    const uint64_t place = h->index_offset + SHARD_SKIP_BYTES + sizeof(uint64_t) * (uint64_t)frame;
    const size_t most = ZSTD_compressBound(SHARD_FRAME_TOKENS * h->id_bytes);

    CHECK(frame >= 0 && frame < h->n_frames, "%s: frame %ld of %u", shard->path, (long)frame,
          h->n_frames);
    if (shard_try_read(shard, false, offset, 2 * sizeof *offset, place, fault) != 0) return -1;
    if (offset[0] >= SHARD_HEADER_BYTES && offset[0] < offset[1] && offset[1] <= h->index_offset &&
        offset[1] - offset[0] <= most)
        return shard_try_read(shard, false, packed, offset[1] - offset[0], offset[0], fault);
    return fault_set(
        fault, CODE_DATA,
        "%s: the index at byte %lu puts frame %ld at bytes %lu .. %lu, expected them within "
        "%d .. %lu and at most %zu bytes",
        shard->path, (unsigned long)place, (long)frame, (unsigned long)offset[0],
        (unsigned long)offset[1], SHARD_HEADER_BYTES, (unsigned long)h->index_offset, most);
}

static int native_try_frame(const struct shard *shard, int64_t frame, struct shard_decoder *dec,
                            void *ids, struct fault *fault)
{
    const size_t want = (size_t)shard_frame_tokens(shard, frame) * shard->header.id_bytes;
    uint64_t offset[2];

    if (read_frame(shard, frame, dec->packed, offset, fault) != 0) return -1;
    const uint64_t bytes = offset[1] - offset[0];
    const size_t got = ZSTD_decompressDCtx(dec->zstd, ids, want, dec->packed, bytes);
    if (ZSTD_isError(got))
        return fault_set(fault, CODE_DATA,
                         "%s: frame %ld at byte %lu (%lu bytes) is altered: %s, expected %zu "
                         "bytes of ids",
                         shard->path, (long)frame, (unsigned long)offset[0], (unsigned long)bytes,
                         ZSTD_getErrorName(got), want);
    if (got != want)
        return fault_set(fault, CODE_DATA,
                         "%s: frame %ld at byte %lu has %zu bytes of ids, expected %zu",
                         shard->path, (long)frame, (unsigned long)offset[0], got, want);
    return check_ids(shard, frame, offset[0], ids, fault);
}

const struct shard_format shard_native = {"native", native_try_open, native_try_check_index,
                                          native_try_document_ends, native_try_frame};
