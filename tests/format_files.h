/*
 * format_files.h - files of token ids as other programs write them, byte by byte, for the tests of
 * the readers. Each has N_IDS ids format_id(i), documents of format_length[] tokens.
 */
#pragma once
#include "data_fixture.h"

enum { N_IDS = 70000, N_DOCUMENTS = 4, DOCUMENT_ID = 500 };
static const int format_length[N_DOCUMENTS] = {30000, 1, 5535, 34464};

/* Ids below 500 that tell the place; in files without an index 500 begins or ends each document. */
static inline uint32_t format_id(int64_t i)
{
    return (uint32_t)(i * 7 + i / 499) % 499;
}

static inline const char *format_write(const char *name, const void *bytes, size_t n)
{
    const char *path = fixture_path(name);
    FILE *file = fopen(path, "wb");
    EXPECT(file && fwrite(bytes, 1, n, file) == n && fclose(file) == 0, "cannot write %s", path);
    return path;
}

struct bytes {
    unsigned char *at;
    size_t n;
};

/* Appends the width low bytes of x, lowest first. */
static inline void put(struct bytes *b, uint64_t x, int width)
{
    static unsigned char room[1 << 20];
    b->at = room;
    for (int i = 0; i < width; i++) b->at[b->n++] = (unsigned char)(x >> 8 * i);
}

static inline void put_text(struct bytes *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) put(b, (unsigned char)text[i], 1);
}

/* begins: 500 is the first token of each document; ends: its last; otherwise it is in none. */
enum marks { NO_MARKS, BEGINS, ENDS };
static inline uint32_t marked_id(int64_t i, enum marks marks)
{
    int64_t begin = 0;
    for (int d = 0; d < N_DOCUMENTS; d++) {
        if (marks == BEGINS && i == begin) return DOCUMENT_ID;
        begin += format_length[d];
        if (marks == ENDS && i == begin - 1) return DOCUMENT_ID;
    }
    return format_id(i);
}

static inline void put_ids(struct bytes *b, int width, enum marks marks)
{
    for (int64_t i = 0; i < N_IDS; i++) put(b, marked_id(i, marks), width);
}

static inline const char *format_raw(const char *name, int width, enum marks marks)
{
    struct bytes b = {0};
    put_ids(&b, width, marks);
    return format_write(name, b.at, b.n);
}

static inline const char *format_llmc(const char *name, int magic, int version, int width)
{
    struct bytes b = {0};
    put(&b, (uint64_t)magic, 4);
    put(&b, (uint64_t)version, 4);
    put(&b, N_IDS, 4);
    while (b.n < 1024) put(&b, 0, 4);
    put_ids(&b, width, BEGINS);
    return format_write(name, b.at, b.n);
}

static inline const char *format_npy(const char *name, int version, const char *header, int width)
{
    struct bytes b = {0};
    put_text(&b, "\x93NUMPY", 6);
    put(&b, (uint64_t)version, 2);
    put(&b, strlen(header), version == 1 ? 2 : 4);
    put_text(&b, header, strlen(header));
    put_ids(&b, width, NO_MARKS);
    return format_write(name, b.at, b.n);
}

static inline const char *format_datatrove(const char *name, const char *metadata, int width)
{
    char beside[128];
    struct bytes b = {0};
    uint64_t end = 0;

    snprintf(beside, sizeof beside, "%s.metadata", name);
    format_write(beside, metadata, strlen(metadata));
    for (int d = 0; d < N_DOCUMENTS; d++) put(&b, end += (uint64_t)format_length[d], 8);
    snprintf(beside, sizeof beside, "%s.index", name);
    format_write(beside, b.at, b.n);
    return format_raw(name, width, NO_MARKS);
}

/* Two sequences for the first document, one for each of the others. stem: name without suffix. */
static inline const char *format_megatron(const char *stem, int code, int width)
{
    static const int sequence[] = {12345, 17655, 1, 5535, 34464}, mark[] = {0, 2, 3, 4, 5};
    char name[128];
    struct bytes b = {0};
    uint64_t at = 0;

    put_text(&b, "MMIDIDX\0", 9);
    put(&b, 1, 8);
    put(&b, (uint64_t)code, 1);
    put(&b, 5, 8);
    put(&b, 5, 8);
    for (int i = 0; i < 5; i++) put(&b, (uint64_t)sequence[i], 4);
    for (int i = 0; i < 5; at += (uint64_t)(sequence[i++] * width)) put(&b, at, 8);
    for (int i = 0; i < 5; i++) put(&b, (uint64_t)mark[i], 8);
    snprintf(name, sizeof name, "%s.idx", stem);
    format_write(name, b.at, b.n);
    snprintf(name, sizeof name, "%s.bin", stem);
    return format_raw(name, width, NO_MARKS);
}
