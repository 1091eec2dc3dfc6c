/* Where documents start within a window, from which labels that cross a boundary are left out. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"

enum { T = 32 };

static void check_window(const char *path, int64_t sample, const int32_t *expected)
{
    struct dataset *ds = fixture_open(path, T);
    struct window *win = window_init(ds);
    struct fault fault;
    int32_t token[T + 1], doc_start[T + 1];

    EXPECT(window_try_read(win, sample, token, doc_start, &fault) == 0, "%s", fault.why);
    for (int t = 0; t <= T; t++)
        EXPECT(doc_start[t] == expected[t], "%s sample %ld token %d: document starts at %d, not %d",
               path, (long)sample, t, doc_start[t], expected[t]);
    window_free(win);
    dataset_close(ds);
}

/* Documents of 5, 1, 2, 8 and 16 tokens fill one window; its last label is of the next document. */
static void check_five(void)
{
    const int length[] = {5, 1, 2, 8, 16, 4};
    const char *path = fixture_shard("five.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 36, length, 6);
    int32_t expected[T + 1];

    for (int t = 0; t <= T; t++)
        expected[t] = t < 5 ? 0 : t < 6 ? 5 : t < 8 ? 6 : t < 16 ? 8 : t < 32 ? 16 : 32;
    check_window(path, 0, expected);
}

/* A run of documents of one token each: every token starts its own. */
static void check_ones(void)
{
    int length[100];
    int32_t expected[T + 1];
    for (int i = 0; i < 100; i++) length[i] = 1;
    for (int t = 0; t <= T; t++) expected[t] = t;
    check_window(fixture_shard("ones.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, length, 100), 1,
                 expected);
}

/* Two shards: a document that ends with the first one, and one that goes on in the second. */
static void check_between_shards(void)
{
    const int ends[] = {20}, goes_on[] = {15}, second[] = {3, 9};
    int32_t expected[T + 1];

    mkdir(fixture_path("ends"), 0755);
    mkdir(fixture_path("on"), 0755);
    fixture_shard("ends/a.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 20, ends, 1);
    fixture_shard("on/a.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 20, goes_on, 1);
    fixture_shard("ends/b.tok.zst", FIXTURE_VOCAB, fixture_id, 20, 20, second, 2);
    fixture_shard("on/b.tok.zst", FIXTURE_VOCAB, fixture_id, 20, 20, second, 2);
    for (int t = 0; t <= T; t++) expected[t] = t < 20 ? 0 : t < 23 ? 20 : t < 32 ? 23 : 32;
    check_window(fixture_path("ends"), 0, expected);
    for (int t = 0; t <= T; t++) expected[t] = t < 15 ? 0 : t < 23 ? 15 : t < 32 ? 23 : 32;
    check_window(fixture_path("on"), 0, expected);
}

/* Many documents of mixed lengths against a plain count; enough to need the search in the file. */
static void check_many(void)
{
    enum { N = 5000 };
    static int length[N];
    static int64_t start_of[N * 97]; /* of the document of each token */
    int64_t n = 0;

    for (int i = 0; i < N; i++) {
        length[i] = 1 + i * 31 % 97 * (i % 3 > 0);
        for (int k = 0; k < length[i]; k++) start_of[n + k] = n;
        n += length[i];
    }
    const char *path = fixture_shard("many.tok.zst", FIXTURE_VOCAB, fixture_id, 0, n, length, N);
    struct dataset *ds = fixture_open(path, T);
    struct window *win = window_init(ds);
    struct fault fault;
    EXPECT(dataset_documents(ds) == N, "%ld documents", (long)dataset_documents(ds));
    for (int64_t s = 0; s < dataset_samples(ds); s++) {
        int32_t token[T + 1], doc_start[T + 1];
        int n_wrong = 0;
        EXPECT(window_try_read(win, s, token, doc_start, &fault) == 0, "%s", fault.why);
        for (int t = 0; t <= T; t++) {
            const int64_t start = start_of[s * T + t] - s * T;
            n_wrong += doc_start[t] != (start > 0 ? start : 0);
        }
        EXPECT(n_wrong == 0, "sample %ld: %d wrong places", (long)s, n_wrong);
    }
    window_free(win);
    dataset_close(ds);
}

int main(void)
{
    check_five();
    check_ones();
    check_between_shards();
    check_many();
    return test_end();
}
