/* lib_run_rig.c - see run_rig.h. */
#include "tests/run_rig.h"

#include "base/mem.h"
#include "base/rng.h"
#include "tests/data_fixture.h"

#include <string.h>

enum { SEQUENCES = 64, MAX_OVERRIDES = 16 };

static uint32_t random_id(int64_t i)
{
    return (uint32_t)(rng_u64(7, (uint64_t)i) % FIXTURE_VOCAB);
}

static const char *shard_path(void)
{
    return fixture_path("train.tok.zst");
}

static int world_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

void run_rig_data(void)
{
    static const int length[] = {40, 3, 2, 120, 1, 700, 33};
    test_tmpdir();
    if (world_rank() == 0)
        fixture_shard("train.tok.zst", FIXTURE_VOCAB, random_id, 0, SEQUENCES * FIXTURE_T + 1,
                      length, sizeof length / sizeof *length);
    MPI_Barrier(MPI_COMM_WORLD);
}

int run_rig_begin(int *argc, char ***argv)
{
    int n_ranks;
    MPI_Init(argc, argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    run_rig_data();
    return n_ranks;
}

void run_rig_init(struct run_rig *rig, const char *name, const char *overrides)
{
    char text[1024], dir[600], data[1100];
    char *list[MAX_OVERRIDES] = {dir, data};
    int n = 2;
    struct err_list errs = {0};
    snprintf(text, sizeof text, "%s", overrides);
    snprintf(dir, sizeof dir, "run.dir=%s/%s", test_tmpdir(), name);
    snprintf(data, sizeof data, "data.train=%s", shard_path());
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        CHECK(n < MAX_OVERRIDES, "more than %d overrides: %s", MAX_OVERRIDES, overrides);
        list[n++] = word;
    }
    memset(rig, 0, sizeof *rig);
    CHECK(config_try_load(&rig->cfg, "tests/tiny.yaml", n, list, &errs) == 0, "%s", errs.text);
    rig->live_before = mem_live();
    run_init(&rig->run, &rig->cfg);
    run_request_step(&rig->run, &rig->run.progress);
}

void run_rig_step(struct run_rig *rig)
{
    run_step(&rig->run);
    mem_freeze();
}

void run_rig_free(struct run_rig *rig)
{
    run_free(&rig->run);
    config_free(&rig->cfg);
    EXPECT(mem_live() == rig->live_before, "%ld blocks before the run, %ld after it",
           rig->live_before, mem_live());
}

void run_rig_compare(const char *name, const char *other, const char *tolerance)
{
    char command[2048];
    if (world_rank() != 0) return;
    snprintf(command, sizeof command,
             "perl tests/compare_metrics %s %s/%s/metrics.jsonl %s/%s/metrics.jsonl >&2", tolerance,
             test_tmpdir(), name, test_tmpdir(), other);
    EXPECT(system(command) == 0, "%s and %s do not train the same", name, other);
}
