/*
 * shard_megatron.c - Megatron-LM's indexed dataset: NAME.bin holds ids and nothing else, NAME.idx
 * (unaligned, little-endian)
 *
 *     0   char[9] "MMIDIDX\0\0"      9  u64 version 1        17  u8 type of the ids
 *     18  u64 S, sequences          26  u64 D, documents + 1
 *     34  i32 tokens[S], i64 byte[S] in the .bin, i64 document[D]: 0, ..., S in sequences
 *
 * A sequence is one or more to a document; all of them are one stream here.
 */
#include "data/shard_inside.h"

#include <string.h>

enum { HEADER_BYTES = 34, CHUNK = 2048 };
static const char magic[9] = "MMIDIDX\0";

struct __attribute__((packed)) idx_header {
    char magic[9];
    uint64_t version;
    uint8_t type;
    uint64_t n_sequences, n_marks; /* marks: documents + 1 */
};
_Static_assert(sizeof(struct idx_header) == HEADER_BYTES, "the header is the file's");

static uint64_t byte_at(const struct shard *shard)
{
    return HEADER_BYTES + 4 * shard->flat.n_sequences;
}

static uint64_t document_at(const struct shard *shard)
{
    return byte_at(shard) + 8 * shard->flat.n_sequences;
}

/* Codes of the file; floats are no ids. */
static int id_type_of(const struct shard *shard, uint8_t code, enum id_type *type,
                      struct fault *fault)
{
    static const enum id_type types[] = {
        [1] = ID_U8, [2] = ID_I8, [3] = ID_I16, [4] = ID_I32, [5] = ID_I64, [8] = ID_U16};
    if (code >= 1 && code <= 8 && code != 6 && code != 7) {
        *type = types[code];
        return 0;
    }
    return fault_set(fault, CODE_DATA,
                     "%s: type of the ids at byte 17 is %d%s, expected 1 .. 5 or 8, integers",
                     shard->index_path, code, code == 6 || code == 7 ? " (floats)" : "");
}

static int check_header(struct shard *shard, const struct idx_header *h, uint64_t bytes,
                        struct fault *fault)
{
    const char *path = shard->index_path;
    const uint64_t S = h->n_sequences, D = h->n_marks, most = UINT64_C(1) << 48;

    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return fault_set(fault, CODE_DATA,
                         "%s: bytes 0 .. 8 are \"%.9s\", expected \"MMIDIDX\" and two zeros", path,
                         h->magic);
    if (shard_try_expect(path, "version", 9, h->version, 1, fault) != 0) return -1;
    if (S < 1 || D < 2 || S > most || D > most)
        return fault_set(fault, CODE_DATA,
                         "%s: %lu sequences (byte 18), %lu document marks (byte 26), expected "
                         "at least 1 and 2",
                         path, (unsigned long)S, (unsigned long)D);
    shard->flat.n_sequences = S;
    const uint64_t expected = document_at(shard) + 8 * D;
    if (bytes == expected + S)
        return fault_set(fault, CODE_DATA,
                         "%s: %lu bytes found, expected %lu: there is a mode for each "
                         "sequence, as of a multimodal dataset, which is not supported",
                         path, (unsigned long)bytes, (unsigned long)expected);
    if (bytes == expected) return 0;
    return fault_set(fault, CODE_DATA,
                     "%s: truncated or altered: %lu bytes found, expected %lu for %lu "
                     "sequences and %lu document marks",
                     path, (unsigned long)bytes, (unsigned long)expected, (unsigned long)S,
                     (unsigned long)D);
}

/* The end of the last sequence is the end of the ids; the first and the last mark are 0 and S. */
static int check_ends(struct shard *shard, uint64_t n_marks, enum id_type type, struct fault *fault)
{
    const uint64_t S = shard->flat.n_sequences, width = (uint64_t)id_type_bytes(type);
    const uint64_t last_mark = document_at(shard) + 8 * (n_marks - 1);
    int64_t first, last, byte;
    int32_t tokens;

    if (shard_try_read(shard, true, &first, 8, document_at(shard), fault) != 0 ||
        shard_try_expect(shard->index_path, "first document mark", document_at(shard),
                         (uint64_t)first, 0, fault) != 0 ||
        shard_try_read(shard, true, &last, 8, last_mark, fault) != 0 ||
        shard_try_expect(shard->index_path, "last document mark", last_mark, (uint64_t)last, S,
                         fault) != 0 ||
        shard_try_read(shard, true, &tokens, 4, HEADER_BYTES + 4 * (S - 1), fault) != 0 ||
        shard_try_read(shard, true, &byte, 8, byte_at(shard) + 8 * (S - 1), fault) != 0)
        return -1;
    if (tokens <= 0 || byte < 0 || (uint64_t)byte % width != 0)
        return fault_set(fault, CODE_DATA,
                         "%s: the last sequence has %d tokens (byte %lu) from byte %ld of the "
                         ".bin on (byte %lu), expected some, from a multiple of %lu on",
                         shard->index_path, tokens, (unsigned long)(HEADER_BYTES + 4 * (S - 1)),
                         (long)byte, (unsigned long)(byte_at(shard) + 8 * (S - 1)),
                         (unsigned long)width);
    return flat_try_init(shard, 0, type, (uint64_t)byte / width + (uint64_t)tokens, fault);
}

static int megatron_try_open(struct shard *shard, const struct data_source *as, struct fault *fault)
{
    struct idx_header h;
    enum id_type type = ID_U16;
    uint64_t bytes;
    const size_t n = strlen(shard->path);
    const size_t cut = n > 4 && strcmp(shard->path + n - 4, ".bin") == 0 ? 4 : 0;

    (void)as; /* documents are listed */
    if (shard_try_open_beside(shard, cut, ".idx", &bytes, fault) != 0) return -1;
    if (bytes < HEADER_BYTES)
        return fault_set(fault, CODE_DATA, "%s: %lu bytes found, expected at least %d",
                         shard->index_path, (unsigned long)bytes, HEADER_BYTES);
    if (shard_try_read(shard, true, &h, sizeof h, 0, fault) != 0 ||
        check_header(shard, &h, bytes, fault) != 0 ||
        id_type_of(shard, h.type, &type, fault) != 0 ||
        check_ends(shard, h.n_marks, type, fault) != 0)
        return -1;
    shard->info.n_documents = (int64_t)h.n_marks - 1;
    return shard_try_sample_hash(shard, true, bytes, &shard->info.document_hash, fault);
}

/* Lengths above 0, and each sequence where the one before ends. */
static int check_sequences(const struct shard *shard, struct fault *fault)
{
    const uint64_t S = shard->flat.n_sequences;
    const int64_t width = id_type_bytes(shard->flat.id_type);
    int32_t tokens[CHUNK];
    int64_t byte[CHUNK], expected = 0;

    for (uint64_t first = 0; first < S; first += CHUNK) {
        const uint64_t n = S - first < CHUNK ? S - first : CHUNK;
        const uint64_t at = HEADER_BYTES + 4 * first, bytes_at = byte_at(shard) + 8 * first;
        if (shard_try_read(shard, true, tokens, 4 * n, at, fault) != 0 ||
            shard_try_read(shard, true, byte, 8 * n, bytes_at, fault) != 0)
            return -1;
        for (uint64_t i = 0; i < n; i++) {
            if (tokens[i] <= 0)
                return fault_set(fault, CODE_DATA,
                                 "%s: sequence %lu at byte %lu has %d tokens, expected some",
                                 shard->index_path, (unsigned long)(first + i),
                                 (unsigned long)(at + 4 * i), tokens[i]);
            if (shard_try_expect(shard->index_path, "place of a sequence", bytes_at + 8 * i,
                                 (uint64_t)byte[i], (uint64_t)expected, fault) != 0)
                return -1;
            expected += tokens[i] * width;
        }
    }
    return shard_try_expect(shard->index_path, "end of all sequences", 26, (uint64_t)expected,
                            shard->info.file_bytes, fault);
}

static int check_marks(const struct shard *shard, struct fault *fault)
{
    const uint64_t D = (uint64_t)shard->info.n_documents + 1;
    int64_t mark[CHUNK], before = 0;

    for (uint64_t first = 0; first < D; first += CHUNK) {
        const uint64_t n = D - first < CHUNK ? D - first : CHUNK;
        const uint64_t at = document_at(shard) + 8 * first;
        if (shard_try_read(shard, true, mark, 8 * n, at, fault) != 0) return -1;
        for (uint64_t i = 0; i < n; i++) {
            if (mark[i] < before || (uint64_t)mark[i] > shard->flat.n_sequences)
                return fault_set(fault, CODE_DATA,
                                 "%s: document mark %lu at byte %lu is %ld, expected %ld .. "
                                 "%lu",
                                 shard->index_path, (unsigned long)(first + i),
                                 (unsigned long)(at + 8 * i), (long)mark[i], (long)before,
                                 (unsigned long)shard->flat.n_sequences);
            before = mark[i];
        }
    }
    return 0;
}

static int megatron_try_check_index(const struct shard *shard, struct fault *fault)
{
    return check_sequences(shard, fault) != 0 || check_marks(shard, fault) != 0 ? -1 : 0;
}

/* A document ends where the sequence after it begins. */
static int megatron_try_document_ends(const struct shard *shard, int64_t first, int64_t n,
                                      uint64_t *end, struct fault *fault)
{
    const uint64_t S = shard->flat.n_sequences, at = document_at(shard) + 8 * (uint64_t)(first + 1);
    const int64_t width = id_type_bytes(shard->flat.id_type);
    int64_t byte;

    if (shard_try_read(shard, true, end, 8 * (size_t)n, at, fault) != 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        if (end[i] == S) {
            end[i] = (uint64_t)shard->info.n_tokens;
            continue;
        }
        const uint64_t place = byte_at(shard) + 8 * end[i];
        if (end[i] > S || shard_try_read(shard, true, &byte, 8, place, fault) != 0 || byte < 0 ||
            byte / width > shard->info.n_tokens)
            return fault_set(fault, CODE_DATA,
                             "%s: document mark %ld at byte %lu is sequence %lu, which is not "
                             "one of %lu within the .bin",
                             shard->index_path, (long)(first + 1 + i),
                             (unsigned long)(at + 8 * (uint64_t)i), (unsigned long)end[i],
                             (unsigned long)S);
        end[i] = (uint64_t)(byte / width);
    }
    return 0;
}

const struct shard_format shard_megatron = {"megatron", megatron_try_open, megatron_try_check_index,
                                            megatron_try_document_ends, flat_try_frame};
