/* Shards of 100, 40 and 62 tokens, windows of 32: samples run across shards, so an epoch has
 * floor((202 - 1) / 32) = 6 of them on any number of ranks, from token 0 to token 192, which is the
 * last label; the 9 tokens behind it are in no sample. */
// TEST ranks=1,2,4 timeout=60
#include "data_fixture.h"
#include "run_rig.h"

enum { T = FIXTURE_T, SAMPLES = 6, LAST_LABEL = 192, EPOCHS = 2 };

static void make_shards(void)
{
    mkdir(fixture_path("three"), 0755);
    fixture_shard("three/a.tok.zst", FIXTURE_VOCAB, fixture_id, 0, 100, NULL, 0);
    fixture_shard("three/b.tok.zst", FIXTURE_VOCAB, fixture_id, 100, 40, NULL, 0);
    fixture_shard("three/c.tok.zst", FIXTURE_VOCAB, fixture_id, 140, 62, NULL, 0);
}

int main(int argc, char **argv)
{
    int rank, size, input[LAST_LABEL] = {0}, n_last = 0;
    char overrides[1500];
    struct run_rig rig;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_tmpdir();
    if (rank == 0) make_shards();
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(overrides, sizeof overrides,
             "data.train=%s data.max_epochs=%d train.global_batch=%d train.steps=%d",
             fixture_path("three"), EPOCHS, size, EPOCHS * SAMPLES / size);
    run_rig_init(&rig, "run", overrides);
    const struct run *run = &rig.run;
    EXPECT(dataset_tokens(run->train_data) == 202, "%ld tokens",
           (long)dataset_tokens(run->train_data));
    EXPECT(dataset_samples(run->train_data) == SAMPLES, "%ld samples",
           (long)dataset_samples(run->train_data));
    for (int step = 0; step < EPOCHS * SAMPLES / size; step++) {
        run_rig_step(&rig);
        const int64_t first = run->sample[0] * T;
        for (int t = 0; t <= T; t++)
            EXPECT(run->token[t] == (int32_t)fixture_id(first + t), "token %ld is %d",
                   (long)first + t, run->token[t]);
        for (int t = 0; t < T && first + t < LAST_LABEL; t++) input[first + t]++;
        n_last += first + T == LAST_LABEL;
    }
    run_rig_free(&rig);
    MPI_Allreduce(MPI_IN_PLACE, input, LAST_LABEL, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &n_last, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int t = 0; t < LAST_LABEL; t++)
        EXPECT(input[t] == EPOCHS, "token %d: %d times in %d epochs", t, input[t], EPOCHS);
    EXPECT(n_last == EPOCHS, "the last label: %d times in %d epochs", n_last, EPOCHS);
    return test_end();
}
