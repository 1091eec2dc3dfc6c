/* unpack.c - see unpack.h. */
#include "data/unpack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum packing { PLAIN, GZIP, ZSTD, OTHER };

struct unpacker {
    const char *path;
    enum packing packing;
    bool within; /* a gzip member or zstd frame, which has not ended */
    ZSTD_DCtx *zstd;
    z_stream gzip;
};

/* A file's first bytes. */
static const struct kind {
    enum packing packing;
    const char *name, *suffix, *program; /* that unpacks it */
    int n;
    const char *magic;
} kinds[] = {{GZIP, "gzip", ".gz", NULL, 3, "\x1f\x8b\x08"},
             {ZSTD, "zstd", ".zst", NULL, 4, "\x28\xb5\x2f\xfd"},
             {OTHER, "xz", NULL, "xz -dc", 6, "\xfd\x37zXZ\0"},
             {OTHER, "bzip2", NULL, "bzip2 -dc", 3, "BZh"},
             {OTHER, "lz4", NULL, "lz4 -dc", 4, "\x04\x22\x4d\x18"},
             {OTHER, "zip", NULL, "unzip -p", 4, "PK\x03\x04"},
             {OTHER, "UTF-16", NULL, "iconv -f UTF-16 -t UTF-8", 2, "\xff\xfe"},
             {OTHER, "UTF-16", NULL, "iconv -f UTF-16 -t UTF-8", 2, "\xfe\xff"}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

struct unpacker *unpacker_init(void)
{
    struct unpacker *u = calloc(1, sizeof *u);

    CHECK(u, "no memory for unpacking");
    u->zstd = ZSTD_createDCtx();
    CHECK(u->zstd && inflateInit2(&u->gzip, 16 + MAX_WBITS) == Z_OK, "no memory for unpacking");
    return u;
}

void unpacker_free(struct unpacker *u)
{
    if (!u) return;
    inflateEnd(&u->gzip);
    ZSTD_freeDCtx(u->zstd);
    free(u);
}

/* zstd's files may also begin with a frame that is to be skipped, of 16 magic numbers. */
static bool is_skippable(const char *head, int64_t n)
{
    return n >= 4 && ((unsigned char)head[0] & 0xf0) == 0x50 &&
           !memcmp(head + 1, "\x2a\x4d\x18", 3);
}

static const struct kind *find_kind(const char *head, int64_t n)
{
    for (int i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        if (k->packing == ZSTD && is_skippable(head, n)) return k;
        if (n < k->n || memcmp(head, k->magic, (size_t)k->n) != 0) continue;
        /* three letters may be a text; behind them a digit and a block's number are not */
        if (k->magic[0] != 'B' || (n >= 10 && !memcmp(head + 4, "1AY&SY", 6))) return k;
    }
    return NULL;
}

static bool ends_with(const char *path, const char *suffix)
{
    const size_t n = strlen(path), n_suffix = strlen(suffix);
    return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0;
}

int unpacker_try_begin(struct unpacker *u, const char *path, const char *head, int64_t n,
                       struct fault *fault)
{
    const struct kind *kind = find_kind(head, n);

    u->path = path;
    u->packing = kind ? kind->packing : PLAIN;
    u->within = u->packing != PLAIN;
    ZSTD_DCtx_reset(u->zstd, ZSTD_reset_session_only);
    inflateReset(&u->gzip);
    if (u->packing == OTHER)
        return fault_set(fault, CODE_DATA,
                         "%s: found %s, expected plain UTF-8 text, gzip or zstd; %s FILE | "
                         "dsv3-tokenize ... - reads it",
                         path, kind->name, kind->program);
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i].suffix && kinds[i].packing != u->packing && ends_with(path, kinds[i].suffix))
            return fault_set(fault, CODE_DATA,
                             "%s: truncated, altered or no %s: its first bytes "
                             "are not those of %s",
                             path, kinds[i].name, kinds[i].name);
    return 0;
}

bool unpacker_is_packed(const struct unpacker *u)
{
    return u->packing != PLAIN;
}

static int64_t unpack_zstd(struct unpacker *u, const char **from, const char *end, char *to,
                           int64_t room, const char **why)
{
    ZSTD_inBuffer in = {*from, (size_t)(end - *from), 0};
    ZSTD_outBuffer out = {to, (size_t)room, 0};
    const size_t left = ZSTD_decompressStream(u->zstd, &out, &in);

    if (ZSTD_isError(left)) *why = ZSTD_getErrorName(left);
    if (in.pos > 0 || out.pos > 0) u->within = left > 0;
    *from += in.pos;
    return (int64_t)out.pos;
}

static int64_t unpack_gzip(struct unpacker *u, const char **from, const char *end, char *to,
                           int64_t room, const char **why)
{
    z_stream *z = &u->gzip;

    z->next_in = (unsigned char *)*from; /* zlib does not write there */
    z->avail_in = (unsigned)(end - *from);
    z->next_out = (unsigned char *)to;
    z->avail_out = (unsigned)room;
    if (z->avail_in > 0) u->within = true;
    const int code = inflate(z, Z_NO_FLUSH);
    if (code == Z_STREAM_END) { /* another member may follow */
        u->within = false;
        inflateReset(z);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
        *why = z->msg ? z->msg : "it does not unpack";
    }
    *from = (const char *)z->next_in;
    return room - z->avail_out;
}

int64_t unpacker_try(struct unpacker *u, const char **from, const char *end, char *to, int64_t room,
                     struct fault *fault)
{
    const char *why = NULL;
    int64_t made;

    do
        made = u->packing == GZIP ? unpack_gzip(u, from, end, to, room, &why)
                                  : unpack_zstd(u, from, end, to, room, &why);
    while (made == 0 && !why && *from < end);
    if (!why) return made;
    return fault_set(fault, CODE_DATA, "%s: altered or no %s: %s", u->path,
                     u->packing == GZIP ? "gzip" : "zstd", why);
}

int unpacker_try_end(const struct unpacker *u, struct fault *fault)
{
    if (!u->within) return 0;
    return fault_set(fault, CODE_DATA, "%s: truncated: the file ends within %s", u->path,
                     u->packing == GZIP ? "a gzip member" : "a zstd frame");
}
