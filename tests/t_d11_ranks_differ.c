/* Ranks that see the same contents under other names agree; when one rank's data differ, or it has
 * none, all ranks are gone within seconds and one line names both fingerprints, or the file. */
// TEST ranks=1 timeout=60
#include "data_fixture.h"

#include "base/clock.h"

#include <signal.h>

enum { T = 8, N_RANKS = 4 };

/* What each rank does: ranks 2 and 3 look at another place. */
static int rank_main(int argc, char **argv)
{
    struct mesh mesh = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mesh.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mesh.size);
    const struct data_sources paths = data_source_at(argv[mesh.rank < 2 ? 1 : 2]);
    struct dataset *ds = dataset_open(&paths, "train", T, FIXTURE_VOCAB, false, &mesh);
    if (mesh.rank == 3) fprintf(stderr, "agreed on 0x%016lx\n", (long)dataset_fingerprint(ds));
    dataset_close(ds);
    MPI_Finalize();
    return 0;
}

static const char *program;

static void start(const char *other)
{
    char n[8];
    snprintf(n, sizeof n, "%d", N_RANKS);
    execlp("mpirun", "mpirun", "-np", n, program, fixture_path("a"), other, (char *)NULL);
    _exit(127);
}

static uint64_t print_of(const char *path)
{
    struct dataset *ds = fixture_open(path, T);
    const uint64_t print = dataset_fingerprint(ds);
    dataset_close(ds);
    return print;
}

/* The exit code, that the words were said, and that a fault takes one line. */
static void expect_end(const char *other, int code, const char *word, const char *second)
{
    char text[2048];
    const double begin_s = clock_s();
    const int got = fixture_die(start, other, text);
    const double took_s = clock_s() - begin_s;

    EXPECT(got == code, "%s: exit code %d, expected %d; said: %s", other, got, code, text);
    EXPECT(strstr(text, word) && strstr(text, second), "'%s' and '%s' not in: %s", word, second,
           text);
    const char *fatal = strstr(text, "fatal");
    EXPECT(!fatal == !code && !(fatal && strstr(fatal + 1, "fatal")), "%s: not one line: %s", other,
           text);
    EXPECT(took_s < test_patience_s(9), "%s: took %.1f s", other, took_s); /* start-up included */
}

int main(int argc, char **argv)
{
    char a[32], c[32];

    if (argc > 1) return rank_main(argc, argv);
    program = argv[0];
    mkdir(fixture_path("a"), 0755);
    mkdir(fixture_path("b"), 0755);
    mkdir(fixture_path("c"), 0755);
    mkdir(fixture_path("d"), 0755);
    const char *x = fixture_shard("a/x.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, NULL, 0);
    const char *y = fixture_shard("a/y.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 90, NULL, 0);
    EXPECT(symlink(x, fixture_path("b/1.tok.zst")) == 0, "symlink");
    EXPECT(symlink(y, fixture_path("b/2.tok.zst")) == 0, "symlink");
    fixture_shard("c/x.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, NULL, 0);
    fixture_shard("c/y.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 89, NULL, 0);
    snprintf(a, sizeof a, "0x%016lx", print_of(fixture_path("a")));
    snprintf(c, sizeof c, "0x%016lx", print_of(fixture_path("c")));

    expect_end(fixture_path("b"), 0, "agreed on", a);
    expect_end(fixture_path("c"), CODE_DATA, a, c);
    expect_end(fixture_path("d"), CODE_NO_INPUT, "d: no *.tok.zst", "rank 2/4");
    return test_end();
}
