/* A file of one format is never read as another in silence: each of many contents is opened under
 * every name and every stated format, and all but the right ones are refused with the file's name.
 * What bytes alone cannot tell is in docs/data.md. */
// TEST ranks=1 timeout=60
#include "format_files.h"

#include <math.h>

enum { N = 20000 };

/* Frequent ids are low ones, as tokenizers number them. */
static uint32_t id_of(int64_t i, uint32_t vocab)
{
    const double x = (double)(XXH64(&i, sizeof i, 0) >> 11) * 0x1p-53;
    return (uint32_t)pow(vocab, x) - 1;
}

#define NPY(type, order, shape)                                                                    \
    "\x93NUMPY\1\0\x50\0{'descr': '" type "', 'fortran_order': " order ", 'shape': (" shape "), }"
#define BEGINS(text) text, sizeof text - 1
#define BY_CONTENTS " npy .bin .npy .u16 .u32 .ds"

/* What a file begins with; spaces up to byte `at`; then N numbers of width bytes below vocab: L the
 * lowest byte first, B the highest, F 4-byte floats, T the beginning again. Right are these stated
 * formats and ends of the name. */
static const struct content {
    const char *begin;
    size_t n;
    int at, width;
    char how;
    uint32_t vocab;
    const char *right;
} contents[] = {
    {BEGINS(""), 0, 2, 'L', 65536, " u16 .u16"},
    {BEGINS(""), 0, 2, 'L', 300, " u16 .u16"},
    {BEGINS(""), 0, 4, 'L', 300, " u32 .u32"},
    {BEGINS(""), 0, 4, 'L', 50257, " u32 .u32"},
    {BEGINS(""), 0, 4, 'L', 200019, " u32 .u32"},
    {BEGINS(""), 0, 8, 'L', 200019, ""},
    {BEGINS(""), 0, 2, 'B', 50257, ""},
    {BEGINS(""), 0, 2, 'B', 65536, ""},
    {BEGINS(""), 0, 4, 'B', 200019, ""},
    {BEGINS(""), 0, 4, 'F', 200019, ""},
    {BEGINS(NPY("<u2", "False", "20000,")), 90, 2, 'L', 65536, BY_CONTENTS},
    {BEGINS(NPY("<i4", "False", "100, 200")), 90, 4, 'L', 200019, BY_CONTENTS},
    {BEGINS(NPY("<i8", "False", "20000,")), 90, 8, 'L', 200019, BY_CONTENTS},
    {BEGINS(NPY("<i4", "False", "10, 10, 200")), 90, 4, 'L', 200019, ""},
    {BEGINS(NPY("<i4", "True", "100, 200")), 90, 4, 'L', 200019, ""},
    {BEGINS(NPY(">u2", "False", "20000,")), 90, 2, 'B', 65536, ""},
    {BEGINS(NPY(">i4", "False", "20000,")), 90, 4, 'B', 200019, ""},
    {BEGINS(NPY("<f4", "False", "20000,")), 90, 4, 'F', 200019, ""},
    {BEGINS(NPY("<u2", "False", "20000,")), 90, 4, 'L', 200019, ""},
    {BEGINS("\x88\xd8\x34\x01\1\0\0\0\x20\x4e\0\0"), 1024, 2, 'L', 65536, " llmc .bin .npy"},
    {BEGINS("\xa1\xd9\x34\x01\7\0\0\0\x20\x4e\0\0"), 1024, 4, 'L', 200019, " llmc .bin .npy"},
    {BEGINS("\x88\xd8\x34\x01\1\0\0\0\x20\x4e\0\0"), 1024, 4, 'L', 200019, ""},
    {BEGINS("\x8a\xd8\x34\x01\1\0\0\0\x20\x4e\0\0"), 1024, 2, 'L', 65536, ""},
    {BEGINS("MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08"), 34, 2, 'L', 65536, ""},
    {BEGINS("\x28\xb5\x2f\xfd"), 4, 2, 'L', 65536, ""},
    {BEGINS("P*M\x18\4\0\0\0\1\0\0\0\x28\xb5\x2f\xfd"), 16, 2, 'L', 65536, ""},
    {BEGINS("P*M\x18\xf8\0\0\0DSV3TOK"), 256, 2, 'L', 65536, ""},
    {BEGINS("\x1f\x8b\x08\0\0\0\0\0\0\3"), 10, 2, 'L', 65536, ""},
    {BEGINS("\x1f\x8b\x08\x08\0\0\0\0\2\3"), 10, 2, 'L', 65536, ""},
    {BEGINS("BZh91AY&SY"), 10, 2, 'L', 65536, ""},
    {BEGINS("\xfd\x37zXZ\0"), 6, 2, 'L', 65536, ""},
    {BEGINS("\x04\x22\x4d\x18"), 4, 2, 'L', 65536, ""},
    {BEGINS("PK\x03\x04"), 4, 2, 'L', 65536, ""},
    {BEGINS("\x89HDF\r\n\x1a\n"), 8, 2, 'L', 65536, ""},
    {BEGINS("PAR1"), 4, 2, 'L', 65536, ""},
    {BEGINS("ARROW1\0\0"), 8, 2, 'L', 65536, ""},
    {BEGINS("\x80\4\x95\0\1\0\0\0\0\0\0"), 12, 2, 'L', 65536, ""},
    {BEGINS("\x40\0\0\0\0\0\0\0{\"__metadata__\":{}}"), 72, 2, 'L', 65536, ""},
    {BEGINS("In the beginning was it\n"), 0, 2, 'T', 65536, ""},
    {BEGINS("{\"text\":  \"\xe8\xb5\xb7\xe5\x88\x9d\"}\n"), 0, 2, 'T', 65536, ""},
};

static void write_content(const char *name, const struct content *c)
{
    struct bytes b = {0};
    put_text(&b, c->begin, c->n);
    while (b.n < (size_t)c->at) put(&b, ' ', 1);
    for (int64_t i = 0; i < N && c->how != 'T'; i++) {
        const uint64_t id = id_of(i, c->vocab);
        const float real = (float)id;
        uint32_t bits;
        memcpy(&bits, &real, sizeof bits);
        put(&b,
            c->how == 'F'   ? bits
            : c->how == 'B' ? __builtin_bswap64(id) >> (64 - 8 * c->width)
                            : id,
            c->width);
    }
    for (int i = 0; i < 600 && c->how == 'T'; i++) put_text(&b, c->begin, c->n);
    format_write(name, b.at, b.n);
}

/* Opens and looks at ids as a run does; 0 when all are those of the content. */
static int read_as(const char *path, const struct content *c, enum data_format format,
                   uint64_t vocab, struct fault *fault)
{
    const struct data_source as = {.format = format, .eod_id = -1, .bos_id = -1};
    struct shard shard = {0};
    if (shard_try_open(&shard, path, &as, fault) != 0) return -1;
    shard.vocab = vocab;
    const int bad = shard_try_check_ids(&shard, fault);
    struct shard_decoder dec;
    uint32_t *ids = malloc(SHARD_FRAME_TOKENS * sizeof *ids);
    shard_decoder_init(&dec);
    const bool is_read = !bad && shard_try_frame(&shard, 0, &dec, ids, fault) == 0;
    int64_t same = 0;
    while (is_read && same < N && shard_id(ids, shard.info.id_bytes, same) == id_of(same, c->vocab))
        same++;
    EXPECT(!is_read || same == N, "%s: id %ld is another", path, (long)same);
    shard_decoder_free(&dec);
    free(ids);
    shard_close(&shard);
    return bad;
}

/* way: the stated format, or the end of the name. */
static void check_way(int k, const char *way, enum data_format format, uint64_t vocab)
{
    const struct content *c = &contents[k];
    char name[64], word[32], stem[32];
    struct fault fault = {0};

    snprintf(name, sizeof name, "content-%d%s", k, format == DATA_FORMAT_AUTO ? way : ".bin");
    snprintf(word, sizeof word, " %s", way);
    snprintf(stem, sizeof stem, "content-%d.", k);
    write_content(name, c);
    const bool right = strstr(c->right, word),
               bad = read_as(fixture_path(name), c, format, vocab, &fault);
    EXPECT(bad != right, "%s as %s, vocabulary %lu: %s", name, way, (unsigned long)vocab,
           bad ? fault.why : "accepted");
    EXPECT(!bad || strstr(fault.why, stem), "%s as %s: %s", name, way, fault.why);
}

int main(void)
{
    static const char *const ends[] = {".bin", ".u16", ".u32", ".npy", ".ds", ".tok.zst"};
    static const char *const formats[] = {"native", "megatron", "llmc", "datatrove",
                                          "npy",    "u16",      "u32"};

    for (int k = 0; k < (int)(sizeof contents / sizeof *contents); k++)
        for (uint64_t vocab = contents[k].vocab; vocab; vocab = vocab < 65536 ? 65536 : 0) {
            for (int e = 0; e < 6; e++) check_way(k, ends[e], DATA_FORMAT_AUTO, vocab);
            for (int f = 0; f < 7; f++)
                check_way(k, formats[f], (enum data_format)(DATA_FORMAT_NATIVE + f), vocab);
        }
    return test_end();
}
