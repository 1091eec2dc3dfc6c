/* Windows run across the frames of a shard, wide ids and small caches included, and the fingerprint
 * of a dataset says what is in it. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"

#include "base/mem.h"

static uint32_t wide_id(int64_t i)
{
    return (uint32_t)(i % 2 ? 129279 - i % 1000 : i % 129000);
}

/* u32 ids over several frames and more of them than the cache holds at once, visited back and
 * forth; the last sample ends with the last token. */
static void check_frames(void)
{
    enum { T = 1000, N = 70 * SHARD_FRAME_TOKENS + 123 };
    const char *path = fixture_shard("wide.tok.zst", 129280, wide_id, 0, N, NULL, 0);
    const struct data_sources paths = data_source_at(path);
    struct dataset *ds = dataset_open(&paths, "train", T, 5000000, false, NULL);
    struct window *win = window_init(ds);
    struct fault fault;
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
        struct data_sources paths = data_source_at(list[i % 3]);
        if (i >= 3) {
            paths.at[0].n_paths = 2;
            paths.at[0].path[0] = i == 3 ? a : c;
            paths.at[0].path[1] = i == 3 ? c : a;
        }
        struct dataset *ds = dataset_open(&paths, "train", 8, FIXTURE_VOCAB, false, NULL);
        print[i] = dataset_fingerprint(ds);
        dataset_close(ds);
    }
    EXPECT(print[0] == print[1], "same contents, 0x%lx and 0x%lx", print[0], print[1]);
    EXPECT(print[0] != print[2], "other documents, both 0x%lx", print[0]);
    EXPECT(print[3] != print[4], "other order, both 0x%lx", print[3]);
}

int main(void)
{
    check_frames();
    check_fingerprint();
    EXPECT(mem_live() == 0, "%ld blocks not freed", mem_live());
    return test_end();
}
