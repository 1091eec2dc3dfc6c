/* shard_flat.c - files of ids that lie there one after the other, behind a header or none: llm.c,
 * NumPy, headerless; and what the formats with an index beside them share with these. */
#include "data/shard_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NPY_MAX_HEADER = 4096, NPY_MAGIC_BYTES = 8 };

int id_type_bytes(int type)
{
    return 1 << type / 2;
}

int flat_try_init(struct shard *shard, uint64_t ids_at, enum id_type type, uint64_t n_tokens,
                  struct fault *fault)
{
    struct shard_info *info = &shard->info;
    const uint64_t width = (uint64_t)id_type_bytes(type);

    if (n_tokens == 0)
        return fault_set(fault, CODE_DATA, "%s: 0 tokens found, a shard has at least 1",
                         shard->path);
    if (n_tokens > SHARD_MAX_TOKENS || info->file_bytes != ids_at + n_tokens * width)
        return fault_set(
            fault, CODE_DATA,
            "%s: truncated or altered: %lu bytes found, expected %lu: %lu ids of %lu bytes from "
            "byte %lu on",
            shard->path, (unsigned long)info->file_bytes,
            (unsigned long)(ids_at + n_tokens * width), (unsigned long)n_tokens,
            (unsigned long)width, (unsigned long)ids_at);
    info->id_bytes = width <= 2 ? 2 : 4;
    info->n_tokens = (int64_t)n_tokens;
    info->n_frames = (info->n_tokens + SHARD_FRAME_TOKENS - 1) / SHARD_FRAME_TOKENS;
    shard->flat.ids_at = ids_at;
    shard->flat.id_type = type;
    return shard_try_sample_hash(shard, false, info->file_bytes, &info->content_hash, fault);
}

void flat_set_documents(struct shard *shard, const struct data_source *as, int bos_id, int eod_id)
{
    const bool stated = as->bos_id >= 0 || as->eod_id >= 0;

    shard->info.bos_id = stated ? as->bos_id : bos_id;
    shard->info.eod_id = stated ? as->eod_id : eod_id;
    shard->info.by_id = shard->info.bos_id >= 0 || shard->info.eod_id >= 0;
    shard->info.document_hash =
        (uint64_t)(uint32_t)shard->info.bos_id << 32 | (uint32_t)shard->info.eod_id;
}

static int64_t id_at(const void *packed, int type, int64_t i)
{
    switch (type) {
    case ID_U8: return ((const uint8_t *)packed)[i];
    case ID_I8: return ((const int8_t *)packed)[i];
    case ID_U16: return ((const uint16_t *)packed)[i];
    case ID_I16: return ((const int16_t *)packed)[i];
    case ID_U32: return ((const uint32_t *)packed)[i];
    case ID_I32: return ((const int32_t *)packed)[i];
    default: return ((const int64_t *)packed)[i];
    }
}

static int bad_id(const struct shard *shard, int64_t first, const void *packed, int64_t i,
                  struct fault *fault)
{
    const int type = shard->flat.id_type;
    const uint64_t at = shard->flat.ids_at + (uint64_t)(first + i) * (uint64_t)id_type_bytes(type);
    const int64_t id = id_at(packed, type, i);
    char halves[64] = "";

    if (shard->format == &shard_u32)
        snprintf(halves, sizeof halves, "; 2-byte ids would be %ld and %ld (format u16)",
                 (long)(id & 0xffff), (long)(id >> 16));
    return fault_set(fault, CODE_DATA, "%s: token %ld (at byte %lu) is id %ld, vocabulary %lu%s",
                     shard->path, (long)(first + i), (unsigned long)at, (long)id,
                     (unsigned long)shard->vocab, halves);
}

/* Ids as wide as they are wanted are read where they belong; a negative one is a large one then. */
int flat_try_frame(const struct shard *shard, int64_t frame, struct shard_decoder *dec, void *ids,
                   struct fault *fault)
{
    const int type = shard->flat.id_type, width = id_type_bytes(type);
    const int64_t n = shard_frame_tokens(shard, frame), first = frame * SHARD_FRAME_TOKENS;
    const uint64_t at = shard->flat.ids_at + (uint64_t)first * (uint64_t)width;
    const uint64_t most = type == ID_I16 ? INT16_MAX : type == ID_I32 ? INT32_MAX : UINT32_MAX;
    const bool direct = width == (int)shard->info.id_bytes;
    void *packed = direct ? ids : dec->packed;

    if (shard_try_read(shard, false, packed, (size_t)n * (size_t)width, at, fault) != 0) return -1;
    if (direct) {
        const uint32_t largest = shard_largest_id(ids, shard->info.id_bytes, n);
        if (largest < shard->vocab && largest <= most) return 0;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t id = id_at(packed, type, i);
        if (id < 0 || (uint64_t)id >= shard->vocab) return bad_id(shard, first, packed, i, fault);
        if (!direct && shard->info.id_bytes == 2) ((uint16_t *)ids)[i] = (uint16_t)id;
        if (!direct && shard->info.id_bytes == 4) ((uint32_t *)ids)[i] = (uint32_t)id;
    }
    return 0;
}

/* Headerless. */
static int raw_try_open(struct shard *shard, const struct data_source *as, enum id_type type,
                        struct fault *fault)
{
    flat_set_documents(shard, as, -1, -1);
    const uint64_t width = (uint64_t)id_type_bytes(type), bytes = shard->info.file_bytes;
    const char *like = shard_looks_like(shard);
    if (like)
        return fault_set(fault, CODE_DATA, "%s: this is %s; format %s is of ids without a header",
                         shard->path, like, shard->format->name);
    if (bytes % width != 0)
        return fault_set(fault, CODE_DATA,
                         "%s: truncated or altered: %lu bytes found, expected a multiple of "
                         "the %lu bytes of an id",
                         shard->path, (unsigned long)bytes, (unsigned long)width);
    return flat_try_init(shard, 0, type, bytes / width, fault);
}

static int u16_try_open(struct shard *shard, const struct data_source *as, struct fault *fault)
{
    return raw_try_open(shard, as, ID_U16, fault);
}

static int u32_try_open(struct shard *shard, const struct data_source *as, struct fault *fault)
{
    return raw_try_open(shard, as, ID_U32, fault);
}

/* 256 words of header: magic, version, number of ids. Documents begin with the token that the
 * tokenizer has for their end. */
static int llmc_try_open(struct shard *shard, const struct data_source *as, struct fault *fault)
{
    enum { GPT2 = 20240520, LLAMA3 = 20240801, EVALUATION = 20240522, WORDS = 256 };
    int32_t word[3];

    if (shard_try_read(shard, false, word, sizeof word, 0, fault) != 0) return -1;
    if (word[0] == EVALUATION)
        return fault_set(fault, CODE_DATA,
                         "%s: magic at byte 0 is %d, a file of multiple-choice questions, "
                         "expected %d or %d, tokens",
                         shard->path, word[0], GPT2, LLAMA3);
    if (word[0] != GPT2 && word[0] != LLAMA3)
        return fault_set(fault, CODE_DATA, "%s: magic at byte 0 is %d, expected %d or %d",
                         shard->path, word[0], GPT2, LLAMA3);
    const bool gpt2 = word[0] == GPT2;
    if (shard_try_expect(shard->path, "version", 4, (uint32_t)word[1], gpt2 ? 1 : 7, fault) != 0)
        return -1;
    if (word[2] < 0)
        return fault_set(fault, CODE_DATA,
                         "%s: number of tokens at byte 8 is %d, expected more than 0", shard->path,
                         word[2]);
    flat_set_documents(shard, as, gpt2 ? 50256 : 128000, -1);
    return flat_try_init(shard, WORDS * sizeof word[0], gpt2 ? ID_U16 : ID_U32, (uint64_t)word[2],
                         fault);
}

static int npy_fault(const struct shard *shard, const char *text, const char *what,
                     struct fault *fault)
{
    const char *end = strchr(text, '}');
    const int n = end && end - text < 200 ? (int)(end - text) + 1 : 200;
    return fault_set(fault, CODE_DATA, "%s: %s in the header at byte %d: %.*s", shard->path, what,
                     NPY_MAGIC_BYTES, n, text);
}

/* What follows 'key': in the header's dictionary; NULL: it is not there. */
static const char *npy_value(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at) return NULL;
    at += strlen(key);
    return at + strspn(at, " :");
}

/* [n] or [rows, n]; a third axis would make rows of what is not one text. */
static int npy_parse_shape(const struct shard *shard, const char *text, const char *shape,
                           uint64_t *n_tokens, struct fault *fault)
{
    int n_axes = 0;

    *n_tokens = 1;
    if (*shape != '(') return npy_fault(shard, text, "shape is not understood", fault);
    for (const char *at = shape + 1; *at && *at != ')'; n_axes++) {
        char *end;
        const uint64_t n = strtoull(at, &end, 10);
        if (end == at || (n > 0 && *n_tokens > SHARD_MAX_TOKENS / n))
            return npy_fault(shard, text, "shape is not understood", fault);
        *n_tokens *= n;
        at = end + strspn(end, ", ");
    }
    if (n_axes == 1 || n_axes == 2) return 0;
    return npy_fault(shard, text, "shape has no axis, or more than two", fault);
}

static int npy_parse(const struct shard *shard, const char *text, enum id_type *type,
                     uint64_t *n_tokens, struct fault *fault)
{
    static const char *const types[] = {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"};
    const char *descr = npy_value(text, "'descr'"), *order = npy_value(text, "'fortran_order'");
    const char *shape = npy_value(text, "'shape'");
    int t = 0;

    if (!descr || !order || !shape) return npy_fault(shard, text, "descr or shape missing", fault);
    while (t < 8 && (*descr != '\'' || strncmp(descr + 1, types[t], 3) || descr[4] != '\'')) t++;
    if (t == 8)
        return npy_fault(shard, text, "descr is no little-endian integer ('<u2', '<u4', ...)",
                         fault);
    if (strncmp(order, "False", 5) != 0)
        return npy_fault(shard, text, "fortran_order is not False", fault);
    *type = (enum id_type)t;
    return npy_parse_shape(shard, text, shape, n_tokens, fault);
}

/* A real NumPy file of integers; the rows of several axes are read one after the other. */
static int npy_try_open(struct shard *shard, const struct data_source *as, struct fault *fault)
{
    unsigned char begin[NPY_MAGIC_BYTES + 4] = {0};
    char text[NPY_MAX_HEADER + 1] = {0};
    enum id_type type = ID_U16;
    uint64_t n_tokens = 0;

    if (shard_try_read(shard, false, begin, sizeof begin, 0, fault) != 0) return -1;
    if (memcmp(begin, "\x93NUMPY", 6) != 0)
        return fault_set(fault, CODE_DATA,
                         "%s: no NumPy file: bytes 0 .. 5 are not \\x93NUMPY; headerless ids "
                         "are format u16 or u32",
                         shard->path);
    if (begin[6] < 1 || begin[6] > 3)
        return fault_set(fault, CODE_DATA, "%s: version at byte 6 is %d, expected 1, 2 or 3",
                         shard->path, begin[6]);
    const size_t length_bytes = begin[6] == 1 ? 2 : 4;
    uint32_t n = begin[8] | (uint32_t)begin[9] << 8;
    if (length_bytes == 4) n |= (uint32_t)begin[10] << 16 | (uint32_t)begin[11] << 24;
    if (n > NPY_MAX_HEADER)
        return fault_set(fault, CODE_DATA, "%s: header length at byte 8 is %u, expected at most %d",
                         shard->path, n, NPY_MAX_HEADER);
    if (shard_try_read(shard, false, text, n, NPY_MAGIC_BYTES + length_bytes, fault) != 0 ||
        npy_parse(shard, text, &type, &n_tokens, fault) != 0)
        return -1;
    flat_set_documents(shard, as, -1, -1);
    return flat_try_init(shard, NPY_MAGIC_BYTES + length_bytes + n, type, n_tokens, fault);
}

const struct shard_format shard_u16 = {"u16", u16_try_open, NULL, NULL, flat_try_frame};
const struct shard_format shard_u32 = {"u32", u32_try_open, NULL, NULL, flat_try_frame};
const struct shard_format shard_llmc = {"llmc", llmc_try_open, NULL, NULL, flat_try_frame};
const struct shard_format shard_npy = {"npy", npy_try_open, NULL, NULL, flat_try_frame};
