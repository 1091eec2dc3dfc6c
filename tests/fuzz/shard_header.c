/*
 * shard_header.c - fuzz target: headers and indexes of other programs' files, with their lengths
 * and the sizes of the files made right, so that what is behind these checks is reached: a NumPy
 * header's text, Megatron's arrays, datatrove's ends of documents.
 */
#include "shard_reads.h"

enum { MAX_BYTES = 1 << 16, IDX_HEADER = 34, NPY_HEADER = 10 };

static uint8_t file[MAX_BYTES + (1 << 16)];

/* The product of the numbers behind "shape", as far as it is small. */
static size_t shape_of(const char *text)
{
    size_t product = 1;
    const char *at = strstr(text, "'shape'");
    for (at = at ? at + strcspn(at, "(") : ""; *at && *at != ')'; at += strspn(at, "(, ")) {
        char *end;
        const unsigned long n = strtoul(at + strspn(at, "(, "), &end, 10);
        if (end == at || n > MAX_BYTES) return product;
        product = product * n > MAX_BYTES ? MAX_BYTES : product * n;
        at = end;
    }
    return product;
}

static void try_npy(const uint8_t *bytes, size_t n)
{
    char text[4097] = {0};
    const size_t n_text = n < 4096 ? n : 4096;
    memcpy(text, bytes, n_text);
    const char *descr = strstr(text, "'descr'"), *digit = descr ? strpbrk(descr, "1248") : NULL;
    const size_t data = shape_of(text) * (size_t)(digit ? *digit - '0' : 2);
    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (uint8_t)n_text;
    file[9] = (uint8_t)(n_text >> 8);
    memcpy(file + NPY_HEADER, text, n_text);
    const size_t size = NPY_HEADER + n_text + data;
    read_shard(fuzz_file("header.npy", file, size < MAX_BYTES ? size : MAX_BYTES), DATA_FORMAT_NPY);
}

/* type, numbers of sequences and marks, then the arrays; the .bin ends where the last sequence
 * does, when that is near. */
static void try_megatron(const uint8_t *bytes, size_t n)
{
    static const uint8_t widths[] = {1, 1, 1, 2, 4, 8, 8, 4, 2};
    if (n < 3) return;
    const uint64_t type = bytes[0] % 9, S = bytes[1] % 32 + 1u, D = bytes[2] % 32 + 2u, version = 1;
    const size_t arrays = 12 * S + 8 * D;
    int32_t tokens;
    int64_t byte, zero = 0, last = (int64_t)S;

    memset(file, 0, sizeof file);
    memcpy(file, "MMIDIDX\0", 9);
    memcpy(file + 9, &version, 8);
    file[17] = (uint8_t)type;
    memcpy(file + 18, &S, 8);
    memcpy(file + 26, &D, 8);
    memcpy(file + IDX_HEADER, bytes + 3, n - 3 < arrays ? n - 3 : arrays);
    memcpy(file + IDX_HEADER + 12 * S, &zero, 8);
    memcpy(file + IDX_HEADER + 12 * S + 8 * (D - 1), &last, 8);
    memcpy(&tokens, file + IDX_HEADER + 4 * (S - 1), 4);
    memcpy(&byte, file + IDX_HEADER + 4 * S + 8 * (S - 1), 8);
    fuzz_file("header.idx", file, IDX_HEADER + arrays);
    const int64_t end = byte >= 0 && byte < MAX_BYTES && tokens > 0 && tokens < MAX_BYTES
                            ? byte + (int64_t)tokens * widths[type]
                            : 0;
    memset(file, 0, sizeof file);
    read_shard(fuzz_file("header.bin", file, end < MAX_BYTES ? (size_t)end : MAX_BYTES),
               DATA_FORMAT_MEGATRON);
}

/* Ends of documents, the last of which is that of the ids, when it is near. */
static void try_datatrove(const uint8_t *bytes, size_t n)
{
    char metadata[64];
    uint64_t last;
    if (n < 8) return;
    n -= n % 8;
    memcpy(&last, bytes + n - 8, 8);
    last = last % 4096 + 1;
    memcpy(file, bytes, n);
    memcpy(file + n - 8, &last, 8);
    fuzz_file("header.ds.index", file, n);
    const int n_metadata = snprintf(metadata, sizeof metadata, "t|2\n%lu\n", (unsigned long)last);
    fuzz_file("header.ds.metadata", metadata, (size_t)n_metadata);
    memset(file, 0, 2 * last);
    read_shard(fuzz_file("header.ds", file, 2 * last), DATA_FORMAT_DATATROVE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n > MAX_BYTES) return 0;
    try_npy(bytes, n);
    try_megatron(bytes, n);
    try_datatrove(bytes, n);
    return 0;
}
