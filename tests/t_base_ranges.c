/* Sets of ranges against a table of every number. */
// TEST timeout=20
#include "base/range.h"
#include "test.h"

#include <string.h>

enum { N = 300 };

static void check(const struct ranges *set, const bool in[N])
{
    for (int i = 0; i < set->n; i++)
        EXPECT(set->at[i].first < set->at[i].end &&
                   (i == 0 || set->at[i].first > set->at[i - 1].end),
               "range %d: %ld to %ld", i, (long)set->at[i].first, (long)set->at[i].end);
    for (int first = 0; first < N; first += 7) {
        int64_t after = first, count = 0, n = 0;
        for (int end = first; end < N; end++) {
            EXPECT(ranges_count(set, first, end) == count, "%d to %d: %ld", first, end,
                   (long)ranges_count(set, first, end));
            count += in[end];
            if (in[end]) continue;
            EXPECT(ranges_after(set, first, n) == after, "%ld from %d: %ld, not %ld", (long)n,
                   first, (long)ranges_after(set, first, n), (long)after);
            after = end + 1;
            n++;
        }
    }
}

int main(void)
{
    static struct ranges set;
    uint64_t key = 1;
    for (int round = 0; round < 40; round++) {
        bool in[N] = {false};
        set.n = 0;
        for (int k = 0; k < 12; k++) {
            key = key * 6364136223846793005u + 1442695040888963407u;
            const int first = (int)(key >> 33) % (N - 20), n = 1 + (int)(key >> 50) % 19;
            EXPECT(ranges_add(&set, first, first + n), "range %d", k);
            for (int i = first; i < first + n; i++) in[i] = true;
            check(&set, in);
        }
    }
    set.n = 0;
    for (int i = 0; i < MAX_RANGES; i++) EXPECT(ranges_add(&set, 2 * i, 2 * i + 1), "range %d", i);
    EXPECT(!ranges_add(&set, 5000, 5001), "one more than there is room for");
    EXPECT(ranges_add(&set, 0, 5000) && set.n == 1, "%d ranges", set.n);
    EXPECT(ranges_after(&set, 7, INT64_MAX) == INT64_MAX, "beyond 64 bits");
    EXPECT(ranges_after(&set, 7, INT64_MAX - 7) == INT64_MAX, "beyond 64 bits");
    return test_end();
}
