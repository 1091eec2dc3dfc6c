/* However many ranks train, an epoch visits each sample once, in the one order that seed and epoch
 * give; every epoch has an order of its own, and one that is taken up in the middle goes on as if
 * it had not stopped. */
// TEST ranks=1,4,8 timeout=100
#include "data_fixture.h"
#include "run_rig.h"

enum { T = FIXTURE_T, BATCH = 8, D01_SAMPLES = 64, D16_SAMPLES = 16, D16_EPOCHS = 3, SEED = 1234 };

static int world_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* The samples that a training run of n sequences reads, in the order of the global batches;
 * gathered from all ranks. */
static void train(const char *name, int n_samples, int n, int64_t *sample)
{
    char overrides[1500];
    struct run_rig rig;

    if (world_rank() == 0)
        fixture_shard(name, FIXTURE_VOCAB, fixture_id, 0, (int64_t)n_samples * T + 1, NULL, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(overrides, sizeof overrides,
             "data.train=%s run.seed=%d train.steps=%d train.global_batch=%d", fixture_path(name),
             SEED, n / BATCH, BATCH);
    run_rig_init(&rig, "run", overrides);
    const struct run *run = &rig.run;
    const int dp = run->mesh.dp, d = run->mesh.axis[AXIS_DP].rank;
    EXPECT(dataset_samples(run->train_data) == n_samples, "%ld samples",
           (long)dataset_samples(run->train_data));
    for (int g0 = 0; g0 < n; g0 += BATCH) {
        run_rig_step(&rig);
        for (int i = 0; i < BATCH / dp; i++) {
            const int64_t s = run->sample[i];
            sample[g0 + i * dp + d] = s;
            EXPECT(run->token[i * (T + 1)] == (int32_t)fixture_id(s * T),
                   "sample %ld begins with %d", (long)s, run->token[i * (T + 1)]);
            /* The one order: what a process alone computes from seed and number. */
            EXPECT(s == dataset_sample_at(run->train_data, SEED, true, g0 + i * dp + d),
                   "number %d is sample %ld", g0 + i * dp + d, (long)s);
        }
    }
    run_rig_free(&rig);
    MPI_Allreduce(MPI_IN_PLACE, sample, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void check_permutation(const int64_t *sample, int n)
{
    int times[D01_SAMPLES] = {0};
    for (int i = 0; i < n; i++) {
        EXPECT(sample[i] >= 0 && sample[i] < n, "place %d has sample %ld of %d", i, (long)sample[i],
               n);
        if (sample[i] >= 0 && sample[i] < n) times[sample[i]]++;
    }
    for (int i = 0; i < n; i++) EXPECT(times[i] == 1, "sample %d of %d: %d times", i, n, times[i]);
}

/* Numbers from .. to - 1 from a reader that has not read any before. */
static void check_resumed(const char *name, const int64_t *sample, int from, int to)
{
    struct dataset *ds = fixture_open(fixture_path(name), T);
    struct reader *rd = reader_init(ds, SEED, true, 1, 1);
    for (int64_t g = from; g < to; g++) {
        reader_request(rd, &g, 1);
        const int64_t s = reader_try_wait(rd, &(struct fault){0})->sample[0];
        EXPECT(s == sample[g], "taken up at %d: number %ld is sample %ld, not %ld", from, (long)g,
               (long)s, (long)sample[g]);
    }
    reader_free(rd);
    dataset_close(ds);
}

int main(int argc, char **argv)
{
    /* Recorded: a run that goes on with another version of the program keeps its order. */
    static const int64_t begin[8] = {15, 21, 63, 48, 37, 26, 34, 53};
    int64_t once[D01_SAMPLES] = {0}, epoch[D16_EPOCHS][D16_SAMPLES] = {{0}};

    MPI_Init(&argc, &argv);
    test_tmpdir();
    train("d01.tok.zst", D01_SAMPLES, D01_SAMPLES, once);
    check_permutation(once, D01_SAMPLES);
    for (int i = 0; i < 8; i++)
        EXPECT(once[i] == begin[i], "place %d has sample %ld, recorded %ld", i, (long)once[i],
               (long)begin[i]);

    train("d16.tok.zst", D16_SAMPLES, D16_EPOCHS * D16_SAMPLES, epoch[0]);
    for (int e = 0; e < D16_EPOCHS; e++) {
        check_permutation(epoch[e], D16_SAMPLES);
        EXPECT(memcmp(epoch[e], epoch[(e + 1) % D16_EPOCHS], sizeof epoch[e]) != 0,
               "epochs %d and %d have the same order", e, (e + 1) % D16_EPOCHS);
    }
    check_resumed("d16.tok.zst", epoch[0], D16_SAMPLES + D16_SAMPLES / 2, D16_EPOCHS * D16_SAMPLES);
    return test_end();
}
