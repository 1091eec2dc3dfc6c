/* However many ranks share a global batch, an epoch visits each sample once in the same order, and
 * a run resumed in the middle goes on as if it had not stopped (three epochs). */
// TEST ranks=1,2,4 timeout=30
#include "data_fixture.h"

enum { T = 8, N_SAMPLES = 64, BATCH = 4, N_EPOCHS = 3, N_ALL = N_SAMPLES * N_EPOCHS, SEED = 1234 };

/* The sample ids of global numbers from .. to - 1, in order, gathered from all ranks: rank r takes
 * its share of each global batch, as the step loop does. Sums of one non-zero value are exact. */
static void run(const struct dataset *ds, int rank, int size, int from, int to, int64_t *sample)
{
    const int share = BATCH / size;
    struct reader *rd = reader_init(ds, SEED, true, share, 2);

    for (int g0 = from; g0 < to; g0 += BATCH) {
        int64_t g[BATCH];
        for (int i = 0; i < share; i++) g[i] = g0 + rank * share + i;
        reader_request(rd, g, share);
        const struct batch *b = reader_wait(rd);
        for (int i = 0; i < share; i++) {
            sample[g[i]] = b->sample[i];
            const int64_t place = b->sample[i] * T;
            EXPECT(b->token[i * (T + 1)] == (int32_t)fixture_id(place), "sample %ld begins with %d",
                   (long)b->sample[i], b->token[i * (T + 1)]);
        }
    }
    reader_free(rd);
    MPI_Allreduce(MPI_IN_PLACE, sample, N_ALL, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static int64_t whole[N_ALL], resumed[N_ALL];
    struct mesh mesh = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mesh.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mesh.size);
    test_tmpdir();
    if (mesh.rank == 0)
        fixture_shard("a.tok.zst", FIXTURE_VOCAB, fixture_id, 0, N_SAMPLES * T + 1, NULL, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    const struct path_list paths = {1, {test_tmpdir()}};
    struct dataset *ds = dataset_open(&paths, "train", T, FIXTURE_VOCAB, &mesh);
    EXPECT(dataset_samples(ds) == N_SAMPLES, "%ld samples", (long)dataset_samples(ds));

    run(ds, mesh.rank, mesh.size, 0, N_ALL, whole);
    for (int epoch = 0; epoch < N_EPOCHS; epoch++) {
        int times[N_SAMPLES] = {0}, n_same = 0;
        for (int i = 0; i < N_SAMPLES; i++) {
            const int64_t s = whole[epoch * N_SAMPLES + i];
            times[s]++;
            n_same += s == whole[(epoch + 1) % N_EPOCHS * N_SAMPLES + i];
            /* The one order: what a single process computes, at every number of ranks. */
            EXPECT(s == dataset_sample_at(ds, SEED, true, epoch * N_SAMPLES + i), "g %d: %ld",
                   epoch * N_SAMPLES + i, (long)s);
        }
        for (int i = 0; i < N_SAMPLES; i++)
            EXPECT(times[i] == 1, "epoch %d has sample %d %d times", epoch, i, times[i]);
        EXPECT(n_same < N_SAMPLES / 4, "epochs %d and next agree in %d places", epoch, n_same);
    }
    const int middle = N_SAMPLES + N_SAMPLES / 2;
    run(ds, mesh.rank, mesh.size, middle, N_ALL, resumed);
    EXPECT(memcmp(whole + middle, resumed + middle, (N_ALL - middle) * sizeof *whole) == 0,
           "resumed at %d: another order", middle);
    dataset_close(ds);
    return test_end();
}
