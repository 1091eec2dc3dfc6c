/* Sources mixed by weight: each has its share at every moment, its samples come in epochs, all from
 * the number of the sample alone, whatever the ranks; and a share that is held out is never trained
 * on. */
// TEST ranks=1,4 timeout=30
#include "data_fixture.h"

#include <math.h>

enum { T = 8, N_SOURCES = 3, N = 3000, SEED = 5, BATCH = 12 };
static const int n_samples[N_SOURCES] = {64, 64, 7};
static const double weight[N_SOURCES] = {0.5, 0.3, 0.2};

static struct data_sources make_sources(bool write)
{
    static char path[N_SOURCES][1024];
    struct data_sources sources = {.n = N_SOURCES};

    for (int s = 0; s < N_SOURCES; s++) {
        char name[32];
        snprintf(name, sizeof name, "s%d.tok.zst", s);
        snprintf(path[s], sizeof path[s], "%s", fixture_path(name));
        if (write)
            fixture_shard(name, FIXTURE_VOCAB, fixture_id, 10000 * s, n_samples[s] * T + 1, NULL,
                          0);
        sources.at[s] = data_source_at(path[s]).at[0];
        sources.at[s].weight = 10 * weight[s]; /* only their ratios count */
    }
    return sources;
}

static int source_of(const struct dataset *ds, int64_t sample)
{
    return (int)(dataset_source_of(ds, sample) - ds->source);
}

/* Shares, epochs, and the same again from any place. */
static void check_order(const struct dataset *ds)
{
    int64_t count[N_SOURCES] = {0}, place[N_SOURCES][N], n_same = 0;

    for (int64_t g = 0; g < N; g++) {
        const int64_t sample = dataset_sample_at(ds, SEED, true, g);
        const int s = source_of(ds, sample);
        for (int k = 0; k < N_SOURCES; k++) {
            EXPECT(dataset_taken(ds, k, g) == count[k], "source %d: %ld of the first %ld, not %ld",
                   k, (long)count[k], (long)g, (long)dataset_taken(ds, k, g));
            /* Half a sample where a source is parted from the rest, and what that moves later. */
            EXPECT(fabs((double)count[k] - weight[k] * (double)g) <= 1, "source %d: %ld of %ld", k,
                   (long)count[k], (long)g);
        }
        EXPECT(dataset_number_of(ds, s, count[s]) == g,
               "sample %ld of source %d: number %ld, not %ld", (long)count[s], s,
               (long)dataset_number_of(ds, s, count[s]), (long)g);
        place[s][count[s]++] = sample - ds->source[s].first_sample;
    }
    for (int s = 0; s < N_SOURCES; s++)
        for (int64_t epoch = 0; (epoch + 1) * n_samples[s] <= count[s]; epoch++) {
            int times[64] = {0};
            for (int i = 0; i < n_samples[s]; i++) times[place[s][epoch * n_samples[s] + i]]++;
            for (int i = 0; i < n_samples[s]; i++)
                EXPECT(times[i] == 1, "source %d epoch %ld: sample %d %d times", s, (long)epoch, i,
                       times[i]);
        }
    for (int i = 0; i < 64; i++) n_same += place[0][i] == place[1][i];
    EXPECT(n_same < 16, "sources 0 and 1 agree in %ld places", (long)n_same);
}

/* The ranks' shares of each batch are the one order; tokens are those of the sample's source. */
static void check_ranks(const struct dataset *ds, int rank, int size)
{
    const int share = BATCH / size;
    struct reader *rd = reader_init(ds, SEED, true, share, 2);
    struct fault fault = {0};

    for (int64_t g0 = 120; g0 < 360; g0 += BATCH) {
        int64_t g[BATCH];
        for (int i = 0; i < share; i++) g[i] = g0 + rank * share + i;
        reader_request(rd, g, share);
        const struct batch *b = reader_try_wait(rd, &fault);
        if (!b) DIE(fault.code, "%s", fault.why);
        for (int i = 0; i < share; i++) {
            const int64_t sample = dataset_sample_at(ds, SEED, true, g[i]);
            const int s = source_of(ds, sample);
            const int64_t at = 10000 * s + (sample - ds->source[s].first_sample) * T;
            EXPECT(b->sample[i] == sample, "sample %ld, not %ld", (long)b->sample[i], (long)sample);
            for (int t = 0; t <= T; t++)
                EXPECT(b->token[i * (T + 1) + t] == (int32_t)fixture_id(at + t),
                       "sample %ld token %d", (long)sample, t);
        }
    }
    reader_free(rd);
}

/* A tenth of each source, rounded up, its end. */
static void check_cut(struct dataset *ds)
{
    static const int n_cut[N_SOURCES] = {7, 7, 1};
    static int trained[135], held[135];
    const uint64_t whole = dataset_fingerprint(ds);
    struct fault fault;
    struct dataset *cut = dataset_try_cut(ds, "heldout", 0.1, &fault);
    int64_t i = 0;

    EXPECT(dataset_samples(ds) == 135 - 15 && dataset_samples(cut) == 15, "%ld and %ld samples",
           (long)dataset_samples(ds), (long)dataset_samples(cut));
    EXPECT(dataset_fingerprint(ds) == whole && dataset_fingerprint(cut) != whole, "fingerprints");
    for (int64_t g = 0; g < N; g++) trained[dataset_sample_at(ds, SEED, true, g)]++;
    for (int64_t g = 0; g < dataset_samples(cut); g++) held[dataset_sample_at(cut, 0, false, g)]++;
    for (int s = 0; s < N_SOURCES; s++)
        for (int k = 0; k < n_samples[s]; k++, i++) {
            const bool out = k >= n_samples[s] - n_cut[s];
            EXPECT(held[i] == out && (trained[i] == 0) == out,
                   "sample %ld: held out %d, trained %d", (long)i, held[i], trained[i]);
        }
    dataset_close(cut);
}

int main(int argc, char **argv)
{
    struct mesh mesh = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mesh.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mesh.size);
    test_tmpdir();
    const struct data_sources sources = make_sources(mesh.rank == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    struct dataset *ds = dataset_open(&sources, "train", T, FIXTURE_VOCAB, false, &mesh);
    check_order(ds);
    check_ranks(ds, mesh.rank, mesh.size);
    check_cut(ds);
    dataset_close(ds);
    return test_end();
}
