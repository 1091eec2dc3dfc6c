/* Windows run across shards and frames, shards come in the bytewise order of their names, and what
 * is left over at the end is stated. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"

#include "base/mem.h"

static uint32_t wide_id(int64_t i)
{
    return (uint32_t)(i % 2 ? 129279 - i % 1000 : i % 129000);
}

/* Shards of 100, 40 and 62 tokens, T = 32: floor((202 - 1) / 32) = 6 samples, the last of which
 * ends with token 192 as a label; tokens 193 .. 201 are in no sample. Written in an order that is
 * not the order of the names: shard_1, shard_10, shard_2. */
static void check_across_shards(void)
{
    enum { T = 32 };
    mkdir(fixture_path("three"), 0755);
    fixture_shard("three/shard_2.tok.zst", FIXTURE_VOCAB, fixture_id, 140, 62, NULL, 0);
    fixture_shard("three/shard_10.tok.zst", FIXTURE_VOCAB, fixture_id, 100, 40, NULL, 0);
    fixture_shard("three/shard_1.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, NULL, 0);
    fixture_shard("three/.hidden.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, NULL, 0);
    struct dataset *ds = fixture_open(fixture_path("three"), T);
    struct window *win = window_init(ds);
    struct shard_fault fault;
    int32_t token[T + 1], doc_start[T + 1];

    EXPECT(dataset_tokens(ds) == 202, "%ld tokens", (long)dataset_tokens(ds));
    EXPECT(dataset_samples(ds) == 6, "%ld samples", (long)dataset_samples(ds));
    for (int64_t s = 0; s < dataset_samples(ds); s++) {
        EXPECT(window_try_read(win, s, token, doc_start, &fault) == 0, "%s", fault.why);
        for (int t = 0; t <= T; t++) {
            EXPECT(token[t] == (int32_t)fixture_id(s * T + t), "sample %ld token %d is %d", (long)s,
                   t, token[t]);
            EXPECT(doc_start[t] == 0, "sample %ld token %d starts at %d", (long)s, t, doc_start[t]);
        }
    }
    EXPECT(token[T] == (int32_t)fixture_id(192), "the last label is %d", token[T]);
    window_free(win);
    dataset_close(ds);
}

/* u32 ids over several frames and more of them than the cache holds at once, visited back and
 * forth; the last sample ends with the last token. */
static void check_frames(void)
{
    enum { T = 1000, N = 70 * SHARD_FRAME_TOKENS + 123 };
    const char *path = fixture_shard("wide.tok.zst", 129280, wide_id, 0, N, NULL, 0);
    const struct path_list paths = {1, {path}};
    struct dataset *ds = dataset_open(&paths, "train", T, 5000000, NULL);
    struct window *win = window_init(ds);
    struct shard_fault fault;
    static int32_t token[T + 1], doc_start[T + 1];
    const int64_t n = dataset_samples(ds);

    EXPECT(n == (N - 1) / T, "%ld samples", (long)n);
    for (int64_t k = 0; k < 2 * n; k += 13) {
        const int64_t s = k % 2 ? n - 1 - k / 2 : k / 2;
        EXPECT(window_try_read(win, s, token, doc_start, &fault) == 0, "%s", fault.why);
        int n_wrong = 0;
        for (int t = 0; t <= T; t++) n_wrong += token[t] != (int32_t)wide_id(s * T + t);
        EXPECT(n_wrong == 0, "sample %ld: %d wrong tokens", (long)s, n_wrong);
    }
    window_free(win);
    dataset_close(ds);
}

/* The fingerprint is of the contents: not of names, directories or compression, but of the order.
 */
static void check_fingerprint(void)
{
    const int length[] = {10, 20};
    mkdir(fixture_path("x"), 0755);
    const char *a = fixture_shard("a.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, length, 2);
    const char *b = fixture_shard("x/b.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, length, 2);
    const char *c = fixture_shard("c.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, length, 1);
    const char *list[] = {a, b, c};
    uint64_t print[5];

    for (int i = 0; i < 5; i++) { /* a, b, c, a + c, c + a */
        struct path_list paths = {1, {list[i % 3]}};
        if (i == 3) paths = (struct path_list){2, {a, c}};
        if (i == 4) paths = (struct path_list){2, {c, a}};
        struct dataset *ds = dataset_open(&paths, "train", 8, FIXTURE_VOCAB, NULL);
        print[i] = dataset_fingerprint(ds);
        dataset_close(ds);
    }
    EXPECT(print[0] == print[1], "same contents, 0x%lx and 0x%lx", print[0], print[1]);
    EXPECT(print[0] != print[2], "other documents, both 0x%lx", print[0]);
    EXPECT(print[3] != print[4], "other order, both 0x%lx", print[3]);
}

int main(void)
{
    check_across_shards();
    check_frames();
    check_fingerprint();
    EXPECT(mem_live() == 0, "%ld blocks not freed", mem_live());
    return test_end();
}
