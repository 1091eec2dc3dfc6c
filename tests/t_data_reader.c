/* Batches read ahead on the reader's thread are those of direct reading, stay valid while the next
 * are read, and nothing is allocated after the start. */
// TEST ranks=1 tsan=1 timeout=30
#include "data_fixture.h"

#include "base/clock.h"
#include "base/mem.h"

#include <time.h>

enum { T = 100, N = 200000, MAX_N = 3, DEPTH = 4, N_REQUESTS = 300, SEED = 9 };

static void check_batch(const struct dataset *ds, struct window *win, const struct batch *b,
                        bool shuffle, int64_t first, int n)
{
    struct fault fault;
    int32_t token[T + 1], doc_start[T + 1];

    EXPECT(b->n == n && b->T == T, "%d samples of %d, expected %d of %d", b->n, b->T, n, T);
    for (int i = 0; i < n; i++) {
        const int64_t s = dataset_sample_at(ds, SEED, shuffle, first + i);
        const int64_t at = (int64_t)i * (T + 1);
        EXPECT(b->sample[i] == s, "sample %ld, expected %ld", (long)b->sample[i], (long)s);
        EXPECT(window_try_read(win, s, token, doc_start, &fault) == 0, "%s", fault.why);
        EXPECT(memcmp(b->token + at, token, sizeof token) == 0, "sample %ld: other ids", (long)s);
        EXPECT(memcmp(b->doc_start + at, doc_start, sizeof doc_start) == 0,
               "sample %ld: other documents", (long)s);
    }
}

static void check_reading(const struct dataset *ds, bool shuffle)
{
    struct reader *rd = reader_init(ds, SEED, shuffle, MAX_N, DEPTH);
    struct window *win = window_init(ds);
    struct fault fault;
    int64_t g = 0, first[N_REQUESTS];

    mem_freeze();
    for (int k = 0; k < N_REQUESTS + DEPTH; k++) {
        if (k < N_REQUESTS) { /* requests of 0, 1, 2, 3, 0, ... samples */
            const int64_t want[MAX_N] = {g, g + 1, g + 2};
            first[k] = g;
            reader_request(rd, want, k % (MAX_N + 1));
            g += k % (MAX_N + 1);
        }
        const int done = k - DEPTH + 1;
        if (done >= 0 && done < N_REQUESTS)
            check_batch(ds, win, reader_try_wait(rd, &fault), shuffle, first[done],
                        done % (MAX_N + 1));
    }
    mem_thaw();
    window_free(win);
    reader_free(rd);
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An idle reader sleeps. A spinning one would use all of the 0.2 s; a tenth of it leaves room for
 * the thread's start. */
static void check_idle(const struct dataset *ds)
{
    struct reader *rd = reader_init(ds, SEED, true, 1, 1);
    const struct timespec pause = {0, 200000000};
    const double before = cpu_s();
    nanosleep(&pause, NULL);
    const double used = cpu_s() - before;
    EXPECT(used < 0.02, "idle reader used %.3f s", used);
    reader_free(rd); /* and ends when asked, with a request outstanding or not */
    rd = reader_init(ds, SEED, true, 1, 1);
    const int64_t g = 0;
    reader_request(rd, &g, 1);
    reader_free(rd);
}

int main(void)
{
    const int length[] = {5000, 1, 1, 70000, 100, 90000};
    struct dataset *ds =
        fixture_open(fixture_shard("a.tok.zst", FIXTURE_VOCAB, fixture_id, 0, N, length, 6), T);

    check_reading(ds, false);
    check_reading(ds, true);
    check_idle(ds);
    dataset_close(ds);
    EXPECT(mem_live() == 0, "%ld blocks not freed", mem_live());
    return test_end();
}
