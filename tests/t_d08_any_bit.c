/* Any single bit of a shard may flip, and the file may end anywhere: it is noticed, or what is read
 * is not changed by it. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"

enum { N = 200, CAP = 4096 };

/* What a run gets from the file, or -1 when a check refuses it. */
static int try_read(const char *path, uint16_t ids[N], uint64_t ends[2])
{
    static uint16_t frame[SHARD_FRAME_TOKENS];
    struct shard shard = {0};
    struct fault fault;
    struct shard_decoder dec;

    if (shard_try_open(&shard, path, NULL, &fault) != 0) return -1;
    shard_decoder_init(&dec);
    const int bad = shard_try_check_index(&shard, &fault) != 0 ||
                    shard_try_frame(&shard, 0, &dec, frame, &fault) != 0 ||
                    shard_try_document_ends(&shard, 0, 2, ends, &fault) != 0;
    shard_decoder_free(&dec);
    EXPECT(bad || shard.header.n_tokens == N, "%lu tokens", (unsigned long)shard.header.n_tokens);
    shard_close(&shard);
    memcpy(ids, frame, N * sizeof *ids);
    return bad ? -1 : 0;
}

int main(void)
{
    const int length[] = {150, 50};
    const char *path = fixture_shard("a.tok.zst", FIXTURE_VOCAB, fixture_id, 0, N, length, 2);
    unsigned char file[CAP];
    uint16_t ids[N], got[N];
    uint64_t ends[2], got_ends[2];

    EXPECT(try_read(path, ids, ends) == 0, "the shard itself is refused");
    EXPECT(ends[0] == 150 && ends[1] == 200, "ends %lu, %lu", (long)ends[0], (long)ends[1]);
    const int fd = open(path, O_RDONLY);
    const int n = (int)read(fd, file, CAP);
    close(fd);
    int n_passed = 0;
    for (int bit = 0; bit < 8 * n; bit++) {
        const unsigned char byte = (unsigned char)(file[bit / 8] ^ 1 << bit % 8);
        fixture_patch(path, bit / 8, &byte, 1);
        if (try_read(path, got, got_ends) == 0) {
            n_passed++;
            EXPECT(memcmp(got, ids, sizeof ids) == 0 && memcmp(got_ends, ends, sizeof ends) == 0,
                   "bit %d of byte %d changes what is read and is not noticed", bit % 8, bit / 8);
        }
        fixture_patch(path, bit / 8, &file[bit / 8], 1);
    }
    /* Only zstd's own frame header has bits that it does not look at. */
    EXPECT(n_passed < 16, "%d bits may flip unnoticed", n_passed);
    for (int bytes = n - 1; bytes >= 0; bytes--) {
        EXPECT(truncate(path, bytes) == 0, "truncate to %d", bytes);
        EXPECT(try_read(path, got, got_ends) != 0, "%d of %d bytes are taken", bytes, n);
    }
    return test_end();
}
