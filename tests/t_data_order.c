/* The order of samples is a permutation, another one in each epoch and for each seed, and fair. */
// TEST ranks=1 timeout=30
#include "data/order.h"
#include "test.h"

#include <string.h>

enum { MAX_N = 5000, N_EPOCHS = 4096, SMALL = 16 };

static void check_permutation(int64_t n, int64_t epoch)
{
    static bool seen[MAX_N];
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < n; i++) {
        const int64_t to = order_permute(1234, epoch, n, i);
        EXPECT(to >= 0 && to < n && !seen[to], "n %ld epoch %ld: %ld -> %ld", (long)n, (long)epoch,
               (long)i, (long)to);
        if (to >= 0 && to < n) seen[to] = true;
    }
}

static int n_fixed(uint64_t seed, int64_t epoch, uint64_t other_seed, int64_t other_epoch)
{
    int n = 0;
    for (int64_t i = 0; i < 1000; i++)
        n += order_permute(seed, epoch, 1000, i) == order_permute(other_seed, other_epoch, 1000, i);
    return n;
}

/* Over many epochs each of 16 samples comes to each of 16 places equally often: chi-square with
 * 15 x 15 degrees of freedom has mean 225 and deviation 21; 330 is five deviations up. */
static void check_fair(void)
{
    int count[SMALL][SMALL] = {{0}};
    double chi2 = 0;
    for (int64_t epoch = 0; epoch < N_EPOCHS; epoch++)
        for (int i = 0; i < SMALL; i++) count[i][order_permute(7, epoch, SMALL, i)]++;
    for (int i = 0; i < SMALL * SMALL; i++) {
        const double expected = N_EPOCHS / (double)SMALL,
                     d = count[i / SMALL][i % SMALL] - expected;
        chi2 += d * d / expected;
    }
    EXPECT(chi2 < 330, "chi-square %.1f, expected about 225", chi2);
}

int main(void)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 64, 1000, 4096, 4097, MAX_N};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t epoch = 0; epoch < 3; epoch++) check_permutation(sizes[i], epoch);

    /* Two independent permutations agree in 1 place on average, in more than 12 never. */
    EXPECT(n_fixed(1, 0, 1, 1) < 12, "epochs 0 and 1 agree in %d of 1000", n_fixed(1, 0, 1, 1));
    EXPECT(n_fixed(1, 1, 1, 2) < 12, "epochs 1 and 2 agree in %d of 1000", n_fixed(1, 1, 1, 2));
    EXPECT(n_fixed(1, 0, 2, 0) < 12, "seeds 1 and 2 agree in %d of 1000", n_fixed(1, 0, 2, 0));
    check_fair();

    /* The largest domain: results stay within it, neighbours go to different places. */
    const int64_t huge = INT64_C(1) << 62;
    const int64_t a = order_permute(1, 0, huge, huge - 1), b = order_permute(1, 0, huge, huge - 2);
    EXPECT(a >= 0 && a < huge && b >= 0 && b < huge && a != b, "%ld, %ld", (long)a, (long)b);
    return test_end();
}
