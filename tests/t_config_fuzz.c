/* Broken and hostile files give messages, not crashes, hangs or unbounded output: a good file with
 * random bytes changed, cut, doubled, and nests, floods and bombs made on purpose. */
// TEST ranks=1 timeout=60 ASAN_OPTIONS=fast_unwind_on_malloc=1
#include "base/rng.h"
#include "lib_config.h"
#include "test.h"

#include <string.h>

enum { N_MUTANTS = 1500, MAX_BYTES = 1 << 21 };

static void try_bytes(const char *bytes, size_t n, bool must_fail)
{
    char path[600];
    struct config cfg;
    struct err_list errs = {0};
    snprintf(path, sizeof path, "%s/fuzz.yaml", test_tmpdir());
    FILE *out = fopen(path, "wb");
    EXPECT(out && fwrite(bytes, 1, n, out) == n && !fclose(out), "cannot write %s", path);
    const int bad = config_try_load(&cfg, path, 0, NULL, &errs);
    EXPECT(bad == (errs.n ? -1 : 0), "returned %d with %d faults", bad, errs.n);
    EXPECT(!must_fail || bad, "accepted: %.60s", bytes);
    EXPECT(errs.n <= 101, "%d faults listed", errs.n); /* MAX_FAULTS and one line that says so */
    if (!bad) {                                        /* what is accepted can be handed on */
        struct config again;
        char *text = config_to_text(&cfg);
        config_from_text(&again, text);
        EXPECT(config_hash(&cfg) == config_hash(&again), "mutant changes on reading back:\n%s",
               text);
        config_try_check_ranks(&cfg, 4, &errs);
        free(text);
        config_free(&again);
    }
    err_free(&errs);
    config_free(&cfg);
}

/* One to four changes: a byte replaced, a piece removed, a piece doubled. */
static size_t mutate(char *text, size_t n, uint64_t key)
{
    static const char bytes[] = "\0\t\n \"'#&*-0159:<>?[]{}|!,%@`~e.\xff\xc3";
    const int n_changes = 1 + (int)(rng_u64(key, 0) % 4);
    for (int i = 0; i < n_changes && n > 8; i++) {
        const uint64_t r = rng_u64(key, 3 * (uint64_t)i + 1), s = rng_u64(key, 3 * (uint64_t)i + 2);
        const size_t at = r % n, length = s % 7 < n - at ? s % 7 : 0;
        if (s % 3 == 0) {
            text[at] = bytes[(s >> 8) % (sizeof bytes - 1)];
        } else if (s % 3 == 1) {
            memmove(text + at, text + at + length, n - at - length);
            n -= length;
        } else {
            memmove(text + at + length, text + at, n - at);
            n += length;
        }
    }
    return n;
}

static void fill(char *text, const char *unit, size_t n_times)
{
    const size_t n = strlen(unit);
    for (size_t i = 0; i < n_times; i++) memcpy(text + i * n, unit, n + 1);
}

int main(void)
{
    const size_t n_good = strlen(config_small_text);
    char *text = malloc(MAX_BYTES);
    EXPECT(text, "no memory");
    for (uint64_t i = 0; text && i < N_MUTANTS; i++) {
        memcpy(text, config_small_text, n_good + 1);
        try_bytes(text, mutate(text, n_good, i), false);
    }
    for (size_t n = 0; text && n < n_good; n += 7) try_bytes(config_small_text, n, true);

    static const struct {
        const char *unit;
        size_t n_times;
    } floods[] = {{"[", 200000},      {"{a: ", 100000}, {"- ", 200000},     {"a: b\n", 100000},
                  {"? ", 100000},     {"!", 100000},    {"\n", 1000000},    {"#", 100000},
                  {"&a [*a, ", 5000}, {"\"", 99999},    {"1: {}\n", 20000}, {"x", 1100000}};
    for (size_t i = 0; text && i < sizeof floods / sizeof *floods; i++) {
        fill(text, floods[i].unit, floods[i].n_times);
        try_bytes(text, strlen(text), true);
    }
    free(text);
    return test_end();
}
