/* A directory's shards come in the bytewise order of their names, whatever the order in which they
 * were made or are listed, on disk and in memory, in any locale; a list keeps its own order. */
// TEST ranks=1 timeout=30
#include "data_fixture.h"

#include <locale.h>

enum { T = 8, N = 40, N_NAMES = 4 };

/* In the order of the bytes; a locale puts Shard_2 behind shard_1, a number shard_2 before
 * shard_10. */
static const char *const sorted[N_NAMES] = {"Shard_2", "shard_1", "shard_10", "shard_2"};

static void make(const char *dir)
{
    static const int made[N_NAMES] = {3, 2, 1, 0}; /* shard_2, shard_10, shard_1 first */
    char name[64];
    for (int i = 0; i < N_NAMES; i++) {
        snprintf(name, sizeof name, "%s/%s.tok.zst", dir, sorted[made[i]]);
        fixture_shard(name, FIXTURE_VOCAB, fixture_id, made[i] * N, N, NULL, 0);
    }
    snprintf(name, sizeof name, "%s/.hidden.tok.zst", dir);
    fixture_shard(name, FIXTURE_VOCAB, fixture_id, 0, N, NULL, 0);
}

/* The shards are expected[0], expected[1], ... and so are the tokens. */
static void check_order(const struct data_sources *paths, const int *expected, int n,
                        const char *how)
{
    struct dataset *ds = dataset_open(paths, "train", T, FIXTURE_VOCAB, false, NULL);
    struct window *win = window_init(ds);
    struct fault fault;
    int32_t token[T + 1], doc_start[T + 1];

    EXPECT(ds->n_shards == n, "%s: %d shards", how, ds->n_shards);
    for (int i = 0; i < n && i < ds->n_shards; i++) {
        const char *slash = strrchr(ds->shard[i].path, '/'), *want = sorted[expected[i]];
        EXPECT(strncmp(slash + 1, want, strlen(want)) == 0 && slash[1 + strlen(want)] == '.',
               "%s: place %d has %s, expected %s", how, i, ds->shard[i].path, want);
        EXPECT(window_try_read(win, i * N / T, token, doc_start, &fault) == 0, "%s", fault.why);
        EXPECT(token[0] == (int32_t)fixture_id(expected[i] * N), "%s: place %d begins with %d", how,
               i, token[0]);
    }
    window_free(win);
    dataset_close(ds);
}

/* A locale whose order is not that of the bytes, made for this test where the machine has none. */
static void make_locale(void)
{
    char command[700];
    snprintf(command, sizeof command,
             "localedef -i en_US -f UTF-8 %s/en_US.UTF-8 >/dev/null 2>&1 || true", test_tmpdir());
    if (setlocale(LC_ALL, "en_US.UTF-8")) return;
    setenv("LOCPATH", test_tmpdir(), 1);
    EXPECT(system(command) == 0, "cannot run %s", command);
}

int main(void)
{
    static const int by_name[] = {0, 1, 2, 3}, as_listed[] = {3, 0};
    static const char *const locales[] = {"C", "en_US.UTF-8"};
    char memory[] = "/dev/shm/dsv3-test-XXXXXX";

    mkdir(fixture_path("disk"), 0755);
    make("disk");
    const bool in_memory = mkdtemp(memory) && symlink(memory, fixture_path("memory")) == 0;
    if (in_memory) make("memory");
    make_locale();
    for (int l = 0; l < 2; l++) {
        if (!setlocale(LC_ALL, locales[l])) printf("no locale %s here\n", locales[l]);
        for (int m = 0; m <= in_memory; m++) {
            const struct data_sources dir = data_source_at(fixture_path(m ? "memory" : "disk"));
            check_order(&dir, by_name, N_NAMES, locales[l]);
        }
        struct data_sources list = data_source_at(fixture_path("disk/shard_2.tok.zst"));
        list.at[0].path[list.at[0].n_paths++] = fixture_path("disk/Shard_2.tok.zst");
        check_order(&list, as_listed, 2, locales[l]);
    }
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", memory);
    if (in_memory) EXPECT(system(command) == 0, "left %s behind", memory);
    return test_end();
}
