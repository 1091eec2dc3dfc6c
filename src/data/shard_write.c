/* shard_write.c - writing a token shard front to back; the format is in shard_native.h. */
#include "data/shard_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

struct list {
    uint64_t *at;
    uint64_t n, cap;
};

struct shard_writer {
    char *path, *temp;
    FILE *file;
    struct shard_header header;
    const uint32_t *id_text_bytes;
    ZSTD_CCtx *zstd;
    XXH64_state_t *content_hash;
    char *ids, *packed; /* one frame before and after compression */
    int n_ids;
    uint64_t offset; /* where the next byte goes */
    struct list frame_offset, document_end;
};

static void *allocate(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);
    CHECK(p, "no memory for %zu bytes", bytes);
    return p;
}

static void list_add(struct list *list, uint64_t x)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 1024;
        list->at = allocate(list->at, list->cap * sizeof *list->at);
    }
    list->at[list->n++] = x;
}

static _Noreturn void write_failed(struct shard_writer *w, const char *what)
{
    const int why = errno;
    unlink(w->temp);
    DIE(CODE_IO, "%s: %s at byte %lu: %s", w->temp, what, (unsigned long)w->offset, strerror(why));
}

static void put(struct shard_writer *w, const void *from, size_t bytes)
{
    if (bytes > 0 && fwrite(from, 1, bytes, w->file) != bytes) write_failed(w, "writing");
    w->offset += bytes;
}

static void put_skippable(struct shard_writer *w, uint32_t magic, uint64_t bytes)
{
    CHECK(bytes + SHARD_SKIP_BYTES <= UINT32_MAX,
          "%s: an index of %lu bytes does not fit into one frame: make smaller shards", w->path,
          (unsigned long)bytes);
    const uint32_t skip[2] = {magic, (uint32_t)bytes};
    put(w, skip, sizeof skip);
}

static void put_frame(struct shard_writer *w)
{
    const size_t bytes = (size_t)w->n_ids * w->header.id_bytes;
    const size_t packed =
        ZSTD_compress2(w->zstd, w->packed, ZSTD_compressBound(bytes), w->ids, bytes);
    CHECK(!ZSTD_isError(packed), "%s: zstd: %s", w->path, ZSTD_getErrorName(packed));
    XXH64_update(w->content_hash, w->ids, bytes);
    list_add(&w->frame_offset, w->offset);
    put(w, w->packed, packed);
    w->n_ids = 0;
}

static void set_kind(struct shard_header *h, const struct shard_kind *kind)
{
    CHECK(kind->vocab_size >= 1 && kind->vocab_size <= UINT64_C(1) << 32, "vocabulary of %lu ids",
          (unsigned long)kind->vocab_size);
    CHECK(strlen(kind->tokenizer) < sizeof h->tokenizer, "tokenizer name %s is longer than %zu",
          kind->tokenizer, sizeof h->tokenizer - 1);
    h->skip_magic = SHARD_HEADER_MAGIC;
    h->skip_bytes = SHARD_HEADER_BYTES - SHARD_SKIP_BYTES;
    memcpy(h->magic, SHARD_MAGIC, sizeof SHARD_MAGIC);
    h->version = SHARD_VERSION;
    h->id_bytes = kind->vocab_size <= UINT64_C(1) << 16 ? 2 : 4;
    h->frame_tokens = SHARD_FRAME_TOKENS;
    h->vocab_size = kind->vocab_size;
    h->bos_id = kind->bos_id;
    h->eod_id = kind->eod_id;
    h->pad_id = kind->pad_id;
    h->tokenizer_hash = kind->tokenizer_hash;
    memcpy(h->tokenizer, kind->tokenizer, strlen(kind->tokenizer));
}

struct shard_writer *shard_writer_init(const char *path, const struct shard_kind *kind)
{
    struct shard_writer *w = allocate(NULL, sizeof *w);

    memset(w, 0, sizeof *w);
    set_kind(&w->header, kind);
    w->id_text_bytes = kind->id_text_bytes;
    w->path = strdup(path);
    w->temp = allocate(NULL, strlen(path) + sizeof ".tmp");
    sprintf(w->temp, "%s.tmp", path);
    w->ids = allocate(NULL, (size_t)SHARD_FRAME_TOKENS * w->header.id_bytes);
    w->packed = allocate(NULL, ZSTD_compressBound((size_t)SHARD_FRAME_TOKENS * w->header.id_bytes));
    w->zstd = ZSTD_createCCtx();
    w->content_hash = XXH64_createState();
    CHECK(w->path && w->zstd && w->content_hash, "no memory for a shard writer");
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, kind->level);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1);
    XXH64_reset(w->content_hash, 0);
    w->file = fopen(w->temp, "wbe");
    CHECK_CODE(CODE_IO, w->file, "%s: cannot create: %s", w->temp, strerror(errno));
    put(w, &w->header, sizeof w->header); /* its place; the final one is written over it */
    return w;
}

static void check_id(const struct shard_writer *w, uint32_t id, int64_t i)
{
    if (id < w->header.vocab_size) return;
    unlink(w->temp);
    DIE(CODE_DATA, "%s: token %lu is id %u, vocabulary %lu", w->path,
        (unsigned long)(w->header.n_tokens + (uint64_t)i), id, (unsigned long)w->header.vocab_size);
}

void shard_writer_add(struct shard_writer *w, const uint32_t *id, int64_t n)
{
    uint32_t max = w->header.max_id;

    for (int64_t i = 0; i < n; i++) {
        check_id(w, id[i], i);
        if (id[i] > max) max = id[i];
        if (w->id_text_bytes) w->header.text_bytes += w->id_text_bytes[id[i]];
        if (w->header.id_bytes == 2)
            ((uint16_t *)w->ids)[w->n_ids] = (uint16_t)id[i];
        else
            ((uint32_t *)w->ids)[w->n_ids] = id[i];
        if (++w->n_ids == SHARD_FRAME_TOKENS) put_frame(w);
    }
    w->header.max_id = max;
    w->header.n_tokens += (uint64_t)n;
}

void shard_writer_end_document(struct shard_writer *w)
{
    const struct list *ends = &w->document_end;
    if (w->header.n_tokens > (ends->n ? ends->at[ends->n - 1] : 0))
        list_add(&w->document_end, w->header.n_tokens);
}

int64_t shard_writer_tokens(const struct shard_writer *w)
{
    return (int64_t)w->header.n_tokens;
}

static void put_index(struct shard_writer *w)
{
    struct shard_header *h = &w->header;
    const size_t frame_bytes = w->frame_offset.n * sizeof(uint64_t);
    const size_t document_bytes = w->document_end.n * sizeof(uint64_t);

    h->offset_hash = XXH64(w->frame_offset.at, frame_bytes, 0);
    h->document_hash = XXH64(w->document_end.at, document_bytes, 0);
    put_skippable(w, SHARD_INDEX_MAGIC, frame_bytes + document_bytes);
    put(w, w->frame_offset.at, frame_bytes);
    put(w, w->document_end.at, document_bytes);
}

/* Every frame of the file has an entry {packed bytes, bytes of ids}; a skippable one has no ids. */
static void put_seek_table(struct shard_writer *w)
{
    const struct shard_header *h = &w->header;
    const uint32_t n_entries = h->n_frames + 2, end_magic = SHARD_SEEK_END_MAGIC;
    uint32_t entry[2] = {SHARD_HEADER_BYTES, 0};

    const uint32_t index_bytes = (uint32_t)(w->offset - h->index_offset);
    put_skippable(w, SHARD_SEEK_MAGIC,
                  (uint64_t)n_entries * SHARD_SEEK_ENTRY_BYTES + SHARD_SEEK_FOOTER_BYTES);
    put(w, entry, sizeof entry);
    for (uint64_t i = 0; i < h->n_frames; i++) {
        const uint64_t left = h->n_tokens - i * SHARD_FRAME_TOKENS;
        const uint64_t n = left < SHARD_FRAME_TOKENS ? left : SHARD_FRAME_TOKENS;
        entry[0] = (uint32_t)(w->frame_offset.at[i + 1] - w->frame_offset.at[i]);
        entry[1] = (uint32_t)n * h->id_bytes;
        put(w, entry, sizeof entry);
    }
    entry[0] = index_bytes;
    entry[1] = 0;
    put(w, entry, sizeof entry);
    put(w, &n_entries, sizeof n_entries);
    put(w, "", 1); /* descriptor: no checksums in the table, the frames have their own */
    put(w, &end_magic, sizeof end_magic);
}

/* Many finished shards may wait for their commit, so what only writing needs goes at once. */
static void free_buffers(struct shard_writer *w)
{
    ZSTD_freeCCtx(w->zstd);
    XXH64_freeState(w->content_hash);
    free(w->frame_offset.at);
    free(w->document_end.at);
    free(w->packed);
    free(w->ids);
    w->zstd = NULL;
    w->content_hash = NULL;
    w->packed = w->ids = NULL;
    w->frame_offset = w->document_end = (struct list){0};
}

void shard_writer_finish(struct shard_writer *w)
{
    struct shard_header *h = &w->header;

    if (w->n_ids > 0) put_frame(w);
    list_add(&w->frame_offset, w->offset);
    h->n_frames = (uint32_t)(w->frame_offset.n - 1);
    h->n_documents = w->document_end.n;
    h->content_hash = XXH64_digest(w->content_hash);
    h->index_offset = w->offset;
    put_index(w);
    put_seek_table(w);
    h->file_bytes = w->offset;
    h->header_hash = XXH64(h, offsetof(struct shard_header, header_hash), 0);
    if (fseek(w->file, 0, SEEK_SET) != 0 || fwrite(h, 1, sizeof *h, w->file) != sizeof *h ||
        fflush(w->file) != 0 || fsync(fileno(w->file)) != 0 || fclose(w->file) != 0)
        write_failed(w, "completing");
    w->file = NULL;
    free_buffers(w);
}

static void writer_free(struct shard_writer *w)
{
    free_buffers(w);
    free(w->temp);
    free(w->path);
    free(w);
}

void shard_writer_commit(struct shard_writer *w)
{
    CHECK(!w->file, "%s: committed before it was finished", w->path);
    if (rename(w->temp, w->path) != 0) write_failed(w, "renaming");
    /* The new name is safe only when the directory is synced too. */
    const int dir = open(dirname(w->temp), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_CODE(CODE_IO, dir >= 0 && fsync(dir) == 0, "%s: syncing the directory: %s", w->path,
               strerror(errno));
    close(dir);
    writer_free(w);
}

void shard_writer_discard(struct shard_writer *w)
{
    if (w->file) fclose(w->file);
    unlink(w->temp);
    writer_free(w);
}
