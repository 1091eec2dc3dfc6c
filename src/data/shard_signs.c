/* shard_signs.c - what a file without a header says against being read as ids of some width: the
 * first bytes of other files, and ids that look like parts of wider numbers. */
#include "data/shard_inside.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

/* FEW_BYTES: fewer may look like text by chance; SMALL: high halves of 4-byte ids are below it. */
enum { BEGIN_BYTES = 512, FEW_BYTES = 16, FEW_IDS = 64, MANY_IDS = 4096, SMALL = 16 };

/* First bytes, of which '?' stands for any. Each is at least four that ids hardly begin with. */
#define BEGINS(text) text, sizeof text - 1
static const struct {
    const char *begin;
    size_t n;
    const char *what;
} signs[] = {
    {BEGINS("P*M\x18????DSV3TOK"), "a shard of dsv3-tokenize: format native reads it"},
    {BEGINS("\x93NUMPY"), "a NumPy file: format npy reads it"},
    {BEGINS("\x88\xd8\x34\x01\x01\0\0\0"), "a file of llm.c: format llmc reads it"},
    {BEGINS("\xa1\xd9\x34\x01\x07\0\0\0"), "a file of llm.c: format llmc reads it"},
    {BEGINS("\x8a\xd8\x34\x01\x01\0\0\0"), "llm.c's multiple-choice questions"},
    {BEGINS("MMIDIDX\0\0"), "an index of Megatron-LM: format megatron reads it with its .bin"},
    {BEGINS("\x28\xb5\x2f\xfd"), "compressed by zstd: unpack it first"},
    {BEGINS("?*M\x18????????\x28\xb5\x2f\xfd"), "compressed by pzstd: unpack it first"},
    {BEGINS("\x1f\x8b\x08\0"), "compressed by gzip: unpack it first"},
    {BEGINS("\x1f\x8b\x08\x08"), "compressed by gzip: unpack it first"},
    {BEGINS("BZh?1AY&SY"), "compressed by bzip2: unpack it first"},
    {BEGINS("\xfd"
            "7zXZ\0"),
     "compressed by xz: unpack it first"},
    {BEGINS("\x04\x22\x4d\x18"), "compressed by lz4: unpack it first"},
    {BEGINS("PK\x03\x04"), "a zip archive (.zip, .npz, .pt)"},
    {BEGINS("\x89HDF\r\n\x1a\n"), "an HDF5 file"},
    {BEGINS("PAR1"), "a Parquet file"},
    {BEGINS("ARROW1\0\0"), "an Arrow file"},
    {BEGINS("\x80?\x95?????\0\0\0"), "a Python pickle"},
    {BEGINS("????\0\0\0\0{\""), "a safetensors file"},
};

static bool begins_like(const char *bytes, size_t n, const char *begin, size_t n_begin)
{
    if (n < n_begin) return false;
    for (size_t i = 0; i < n_begin; i++)
        if (begin[i] != '?' && begin[i] != bytes[i]) return false;
    return true;
}

/* Without control characters; a short file of bytes above 127 may be so by chance. */
static bool is_text(const char *bytes, size_t n)
{
    bool ascii = true;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if ((c < ' ' && !strchr("\t\n\r", c)) || c == 0 || c == 0x7f) return false;
        if (c > 0x7f) ascii = false;
    }
    return n == BEGIN_BYTES || (n >= FEW_BYTES && ascii);
}

const char *shard_looks_like(const struct shard *shard)
{
    char bytes[BEGIN_BYTES];
    const ssize_t n = file_read(shard->fd, shard->path, bytes, sizeof bytes, 0);

    for (size_t i = 0; n > 0 && i < sizeof signs / sizeof *signs; i++)
        if (begins_like(bytes, (size_t)n, signs[i].begin, signs[i].n)) return signs[i].what;
    return n > 0 && is_text(bytes, (size_t)n) ? "text: dsv3-tokenize makes shards of it" : NULL;
}

/* By even and odd place: the largest id, the largest low byte, all bits of low bytes. */
struct halves {
    uint32_t id[2], low[2], bits[2];
};

/* Low bytes are the high bytes of wider numbers, or the end of a floating-point one. */
static bool is_plain(const struct halves *h, int place)
{
    return h->low[place] < SMALL || h->bits[place] % SMALL == 0;
}

/* There is next to nothing in the low bytes of one kind of place, and more in the other. */
static bool is_bare(const struct halves *h, int place)
{
    return (h->low[place] == 0 && h->low[!place] > 0) ||
           (is_plain(h, place) && !is_plain(h, !place));
}

static int width_fault(const struct shard *shard, int64_t frame, const struct halves *h,
                       struct fault *fault)
{
    const int bytes = (int)shard->info.id_bytes, bare = is_bare(h, 1) ? 1 : 0;

    if (bare == 1 && h->id[1] < SMALL)
        return fault_set(fault, CODE_DATA,
                         "%s: every second id of frame %ld is at most %u, the others reach %u: "
                         "these are %d-byte ids, expected %d-byte ones%s",
                         shard->path, (long)frame, h->id[1], h->id[0], 2 * bytes, bytes,
                         bytes == 2 ? "; format u32 reads them" : "");
    return fault_set(fault, CODE_DATA,
                     "%s: every second id of frame %ld has next to nothing in its low byte (bits "
                     "0x%02x, the others 0x%02x): these are parts of wider numbers, big-endian or "
                     "floating-point, expected little-endian integers of %d bytes",
                     shard->path, (long)frame, h->bits[bare], h->bits[!bare], bytes);
}

/* Tokenizers number what is frequent first, so high bytes are small more often than low bytes. */
static bool is_swapped(const uint16_t *ids, int64_t n)
{
    int64_t n_low = 0, n_high = 0;
    for (int64_t i = 0; i < n; i++) {
        n_low += (ids[i] & 0xff) < SMALL;
        n_high += ids[i] >> 8 < SMALL;
    }
    return n >= MANY_IDS && n_low > n / 2 && n_low / 2 > n_high;
}

int shard_try_check_width(const struct shard *shard, int64_t frame, const void *ids,
                          struct fault *fault)
{
    const uint32_t id_bytes = shard->info.id_bytes;
    const int64_t n = shard_frame_tokens(shard, frame);
    struct halves h = {{0}, {0}, {0}};

    for (int64_t i = 0; i < n; i++) {
        const uint32_t id = shard_id(ids, id_bytes, i), low = id & 0xff;
        if (id > h.id[i & 1]) h.id[i & 1] = id;
        if (low > h.low[i & 1]) h.low[i & 1] = low;
        h.bits[i & 1] |= low;
    }
    if (n >= FEW_IDS && (is_bare(&h, 0) || is_bare(&h, 1)))
        return width_fault(shard, frame, &h, fault);
    if (id_bytes == 2 && is_swapped(ids, n))
        return fault_set(fault, CODE_DATA,
                         "%s: low bytes of frame %ld are mostly below %d, high bytes are not: "
                         "these are big-endian ids, expected little-endian ones",
                         shard->path, (long)frame, SMALL);
    return 0;
}
