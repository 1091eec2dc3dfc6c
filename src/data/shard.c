/* shard.c - what all formats of shards have in common: telling which one a file is, opening it,
 * reading with messages; see shard.h. */
#include "data/shard_inside.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

enum { SAMPLE_BYTES = 4096, MAX_ID_BYTES = 8, BEGINNING_BYTES = 16 };

static const struct {
    const struct shard_format *format; /* NULL: told by the contents */
    const char *names;                 /* of its files in a directory */
} by_format[] = {
    [DATA_FORMAT_AUTO] = {NULL, "*.tok.zst *.bin *.ds *.npy *.u16 *.u32"},
    [DATA_FORMAT_NATIVE] = {&shard_native, "*.tok.zst"},
    [DATA_FORMAT_MEGATRON] = {&shard_megatron, "*.bin"},
    [DATA_FORMAT_LLMC] = {&shard_llmc, "*.bin"},
    [DATA_FORMAT_DATATROVE] = {&shard_datatrove, "*.ds"},
    [DATA_FORMAT_NPY] = {&shard_npy, "*.npy"},
    [DATA_FORMAT_U16] = {&shard_u16, "*.u16 *.bin *.npy"},
    [DATA_FORMAT_U32] = {&shard_u32, "*.u32 *.bin *.npy"},
};

int shard_try_read(const struct shard *shard, bool index, void *to, size_t bytes, uint64_t offset,
                   struct fault *fault)
{
    const int fd = index ? shard->index_fd : shard->fd;
    const char *path = index ? shard->index_path : shard->path;
    const ssize_t n = file_read(fd, path, to, bytes, offset);

    if (n == (ssize_t)bytes) return 0;
    if (n < 0)
        return fault_set(fault, CODE_NO_INPUT, "%s: reading %zu bytes at byte %lu: %s", path, bytes,
                         (unsigned long)offset, strerror(errno));
    return fault_set(fault, CODE_DATA,
                     "%s: the file ends at byte %lu, expected %zu bytes at byte %lu", path,
                     (unsigned long)(offset + (uint64_t)n), bytes, (unsigned long)offset);
}

int shard_try_expect(const char *path, const char *field, uint64_t offset, uint64_t found,
                     uint64_t expected, struct fault *fault)
{
    if (found == expected) return 0;
    return fault_set(fault, CODE_DATA, "%s: %s at byte %lu is %lu (0x%lx), expected %lu (0x%lx)",
                     path, field, (unsigned long)offset, (unsigned long)found, (unsigned long)found,
                     (unsigned long)expected, (unsigned long)expected);
}

int shard_try_sample_hash(const struct shard *shard, bool index, uint64_t bytes, uint64_t *hash,
                          struct fault *fault)
{
    const uint64_t n = bytes < SAMPLE_BYTES ? bytes : SAMPLE_BYTES;
    const uint64_t at[] = {0, (bytes - n) / 2, bytes - n};
    char sample[SAMPLE_BYTES];

    *hash = XXH64(&bytes, sizeof bytes, 0);
    for (int i = 0; i < 3; i++) {
        if (shard_try_read(shard, index, sample, n, at[i], fault) != 0) return -1;
        *hash = XXH64(sample, n, *hash);
    }
    return 0;
}

/* 1: there is no such file. */
static int try_open_file(const char *path, int *fd, uint64_t *bytes, struct fault *fault)
{
    struct stat st;
    const char *why;

    *fd = file_open(path, &st, &why);
    const int err = errno;
    *bytes = *fd < 0 ? 0 : (uint64_t)st.st_size;
    if (*fd >= 0) return 0;
    fault_set(fault, CODE_NO_INPUT, "%s: cannot open: %s%s", path, why,
              err == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
    return err == ENOENT ? 1 : -1;
}

int shard_try_open_beside(struct shard *shard, size_t cut, const char *suffix, uint64_t *bytes,
                          struct fault *fault)
{
    const size_t stem = strlen(shard->path) - cut, size = stem + strlen(suffix) + 1;

    free(shard->index_path);
    shard->index_path = malloc(size);
    CHECK(shard->index_path, "no memory for a file name");
    snprintf(shard->index_path, size, "%.*s%s", (int)stem, shard->path, suffix);
    return try_open_file(shard->index_path, &shard->index_fd, bytes, fault);
}

static bool ends_with(const char *text, const char *end, size_t n_end)
{
    const size_t n = strlen(text);
    return n > n_end && strncmp(text + n - n_end, end, n_end) == 0;
}

bool shard_is_name(const char *name, enum data_format format)
{
    if (name[0] == '.') return false;
    for (const char *s = by_format[format].names; *s; s += strspn(s, " ")) {
        const size_t n = strcspn(s, " ");
        if (ends_with(name, s + 1, n - 1)) return true;
        s += n;
    }
    return false;
}

const char *shard_names(enum data_format format)
{
    return by_format[format].names;
}

/* A Megatron file has nothing that tells it, but NAME.idx beside NAME.bin. */
static bool has_idx(const char *path)
{
    char idx[4096];
    const size_t n = strlen(path);
    if (!ends_with(path, ".bin", 4) || n >= sizeof idx) return false;
    snprintf(idx, sizeof idx, "%.*sidx", (int)n - 3, path);
    return access(idx, F_OK) == 0;
}

static const struct shard_format *tell_format(const struct shard *shard)
{
    uint32_t word[BEGINNING_BYTES / 4] = {0};
    const ssize_t n = file_read(shard->fd, shard->path, word, sizeof word, 0);
    const char *bytes = (const char *)word, *path = shard->path;

    if (ends_with(path, SHARD_SUFFIX, strlen(SHARD_SUFFIX))) return &shard_native;
    if (n == sizeof word && word[0] == SHARD_HEADER_MAGIC && !memcmp(bytes + 8, SHARD_MAGIC, 7))
        return &shard_native;
    if (n >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0) return &shard_npy;
    if (has_idx(path)) return &shard_megatron;
    if (ends_with(path, ".ds", 3)) return &shard_datatrove;
    if (ends_with(path, ".u16", 4)) return &shard_u16;
    if (ends_with(path, ".u32", 4)) return &shard_u32;
    if (n == sizeof word && word[0] / 1000 == 20240) return &shard_llmc; /* a date, May to August */
    return NULL;
}

static int format_fault(const struct shard *shard, struct fault *fault)
{
    const char *like = shard_looks_like(shard);
    if (like) return fault_set(fault, CODE_DATA, "%s: this is %s", shard->path, like);
    return fault_set(fault, CODE_DATA,
                     "%s: neither name nor contents tell the format; state it: {path: %s, format: "
                     "F} with F one of native, megatron, llmc, datatrove, npy, u16, u32",
                     shard->path, shard->path);
}

int shard_try_open(struct shard *shard, const char *path, const struct data_source *as,
                   struct fault *fault)
{
    static const struct data_source nothing = {.eod_id = -1, .bos_id = -1};

    memset(shard, 0, sizeof *shard);
    shard->path = path;
    shard->index_fd = -1;
    shard->info = (struct shard_info){.max_id = -1, .bos_id = -1, .eod_id = -1, .pad_id = -1};
    shard->vocab = UINT64_C(1) << 32;
    if (!as) as = &nothing;
    bool ok = try_open_file(path, &shard->fd, &shard->info.file_bytes, fault) == 0;
    if (ok) {
        shard->format =
            by_format[as->format].format ? by_format[as->format].format : tell_format(shard);
        if (!shard->format && shard->info.file_bytes == 0)
            ok = fault_set(fault, CODE_DATA, "%s: 0 bytes found: the file is empty", path) == 0;
        else if (shard->format)
            ok = shard->format->try_open(shard, as, fault) == 0;
        else
            ok = format_fault(shard, fault) == 0;
    }
    if (ok) return 0;
    shard_close(shard);
    return -1;
}

void shard_close(struct shard *shard)
{
    if (!shard->path) return;
    if (shard->fd >= 0) close(shard->fd);
    if (shard->index_fd >= 0) close(shard->index_fd);
    free(shard->index_path);
    memset(shard, 0, sizeof *shard);
}

const char *shard_format_name(const struct shard *shard)
{
    return shard->format->name;
}

bool shard_find_format(const char *name, enum data_format *format)
{
    for (int f = DATA_FORMAT_NATIVE; f <= DATA_FORMAT_U32; f++) {
        *format = (enum data_format)f;
        if (strcmp(by_format[f].format->name, name) == 0) return true;
    }
    return false;
}

int shard_try_check_index(const struct shard *shard, struct fault *fault)
{
    return shard->format->try_check_index ? shard->format->try_check_index(shard, fault) : 0;
}

int shard_try_document_ends(const struct shard *shard, int64_t first, int64_t n, uint64_t *end,
                            struct fault *fault)
{
    CHECK(first >= 0 && n >= 0 && first + n <= shard->info.n_documents,
          "%s: document ends %ld .. %ld of %ld", shard->path, (long)first, (long)(first + n),
          (long)shard->info.n_documents);
    return n > 0 ? shard->format->try_document_ends(shard, first, n, end, fault) : 0;
}

int shard_try_frame(const struct shard *shard, int64_t frame, struct shard_decoder *dec, void *ids,
                    struct fault *fault)
{
    CHECK(frame >= 0 && frame < shard->info.n_frames, "%s: frame %ld of %ld", shard->path,
          (long)frame, (long)shard->info.n_frames);
    return shard->format->try_frame(shard, frame, dec, ids, fault);
}

void shard_decoder_init(struct shard_decoder *dec)
{
    dec->zstd = ZSTD_createDCtx();
    CHECK(dec->zstd, "no memory for a zstd context");
    dec->packed = mem_alloc(SHARD_FRAME_TOKENS * MAX_ID_BYTES, "packed frame");
}

void shard_decoder_free(struct shard_decoder *dec)
{
    ZSTD_freeDCtx(dec->zstd);
    mem_free(dec->packed);
    memset(dec, 0, sizeof *dec);
}

int shard_try_check_ids(const struct shard *shard, struct fault *fault)
{
    const int64_t n_frames = shard->info.n_frames, at[] = {0, n_frames / 2, n_frames - 1};
    struct shard_decoder dec;
    int bad = 0;

    if (shard->info.max_id >= 0) return 0;
    void *ids = mem_alloc((size_t)SHARD_FRAME_TOKENS * sizeof(uint32_t), "frame of ids");
    shard_decoder_init(&dec);
    for (int i = 0; i < 3 && !bad; i++) {
        bad = shard_try_frame(shard, at[i], &dec, ids, fault);
        if (!bad && (shard->format == &shard_u16 || shard->format == &shard_u32))
            bad = shard_try_check_width(shard, at[i], ids, fault);
    }
    shard_decoder_free(&dec);
    mem_free(ids);
    return bad;
}

uint64_t shard_fingerprint(const struct shard *shard, uint64_t before)
{
    const struct shard_info *i = &shard->info;
    const uint64_t seen[] = {
        before,        i->id_bytes,       (uint64_t)i->n_tokens, (uint64_t)i->n_documents,
        i->vocab_size, i->tokenizer_hash, i->content_hash,       i->document_hash};
    return XXH64(seen, sizeof seen, 0);
}
