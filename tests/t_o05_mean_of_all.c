/* The reported losses are means over the labels of the whole global batch, of the main model and of
 * the MTP modules each: with easy and hard data on different ranks and in different micro-batches
 * they are the means of all dumped token losses, and no part's mean. */
// TEST ranks=1 timeout=60 cores=2
#include "base/rng.h"
#include "data_fixture.h"

#include <jansson.h>
#include <math.h>

/* Eight sequences a step, over and over: every other one goes to rank 1. A hard sequence has random
 * tokens; the short one is documents of two tokens, so 16 labels and none for MTP; a long one has
 * 31 and 30. */
enum { T = FIXTURE_T, BATCH = 8, RANKS = 2, STEPS = 6, EASY_ID = 7 };
static const struct {
    bool hard, is_short;
} sequence[BATCH] = {{false, false}, {true, false}, {false, false}, {true, false},
                     {false, true},  {true, false}, {false, false}, {true, false}};
enum { LABELS = 7 * 31 + 16, MTP_LABELS = 7 * 30 };

static uint32_t token_id(int64_t i)
{
    return sequence[i / T % BATCH].hard ? (uint32_t)(rng_u64(3, (uint64_t)i) % FIXTURE_VOCAB)
                                        : EASY_ID;
}

static const char *make_shard(void)
{
    static int length[STEPS * BATCH * T];
    int n = 0;
    for (int s = 0; s < STEPS * BATCH; s++)
        for (int left = T; left > 0; left -= length[n++])
            length[n] = sequence[s % BATCH].is_short ? 2 : T;
    return fixture_shard("train.tok.zst", FIXTURE_VOCAB, token_id, 0, STEPS * BATCH * T + 1, length,
                         n);
}

static void train(void)
{
    char command[3000];
    snprintf(command, sizeof command,
             "timeout 60 mpirun -np %d $DSV3_BUILD/dsv3 "
             "train tests/tiny.yaml run.dir=%s/run data.train=%s data.document_mask=true "
             "data.shuffle=false train.global_batch=%d train.steps=%d optimizer.lr=0.01 "
             "debug.dump_step=%d </dev/null",
             RANKS, test_tmpdir(), make_shard(), BATCH, STEPS, STEPS);
    const int status = system(command);
    EXPECT(status == 0, "ended with status %#x", (unsigned)status);
}

/* Token losses that are not zero: all without a label are, none of a little trained model is. */
struct sum {
    int n;
    double of;
};

static void add(struct sum *sum, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const double x = json_number_value(json_array_get(list, i));
        sum->n += x != 0;
        sum->of += x;
    }
}

/* The main model's and the MTP module's of one rank, by micro-batch (one sequence each). */
static void read_dump(int rank, struct sum main[BATCH / RANKS], struct sum mtp[BATCH / RANKS])
{
    char path[700], line[65536];
    int n = 0;
    snprintf(path, sizeof path, "%s/run/dump-step-%d/rank-%05d.jsonl", test_tmpdir(), STEPS, rank);
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    for (; in && n < BATCH / RANKS && fgets(line, sizeof line, in); n++) {
        json_t *o = json_loads(line, 0, NULL);
        add(&main[n], json_object_get(o, "loss"));
        add(&mtp[n], json_array_get(json_object_get(o, "mtp_loss"), 0));
        json_decref(o);
    }
    EXPECT(n == BATCH / RANKS, "%d sequences in %s", n, path);
    if (in) fclose(in);
}

/* Number of `key` of the last step. */
static double reported(const char *key)
{
    char path[700], line[65536];
    double value = -1;
    snprintf(path, sizeof path, "%s/run/metrics.jsonl", test_tmpdir());
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    while (in && fgets(line, sizeof line, in)) {
        json_t *o = json_loads(line, 0, NULL);
        if (json_object_get(o, "loss")) value = json_number_value(json_object_get(o, key));
        json_decref(o);
    }
    if (in) fclose(in);
    return value;
}

static void check(const char *key, struct sum part[RANKS][BATCH / RANKS], int n_labels)
{
    struct sum all = {0};
    double means = 0;
    const double got = reported(key);
    for (int r = 0; r < RANKS; r++) {
        struct sum of_rank = {0};
        for (int i = 0; i < BATCH / RANKS; i++) {
            of_rank.n += part[r][i].n;
            of_rank.of += part[r][i].of;
        }
        const double of_last = part[r][BATCH / RANKS - 1].of / part[r][BATCH / RANKS - 1].n;
        EXPECT(fabs(of_rank.of / of_rank.n - got) > 0.1 * got && fabs(of_last - got) > 0.1 * got,
               "%s %g tells nothing: rank %d has %g, %g in its last micro-batch", key, got, r,
               of_rank.of / of_rank.n, of_last);
        means += of_rank.of / of_rank.n;
        all.n += of_rank.n;
        all.of += of_rank.of;
    }
    EXPECT(all.n == n_labels, "%s: %d labels, expected %d", key, all.n, n_labels);
    /* 1e-6: the dumped losses are F32 of 9 digits. */
    EXPECT(fabs(got - all.of / all.n) <= 1e-6 * got, "%s %.9g, mean of all tokens %.9g", key, got,
           all.of / all.n);
    EXPECT(fabs(got - means / RANKS) > 1e-3 * got, "%s %g is the mean of ranks' means, too", key,
           got);
}

int main(void)
{
    static struct sum main_loss[RANKS][BATCH / RANKS], mtp_loss[RANKS][BATCH / RANKS];
    train();
    for (int r = 0; r < RANKS; r++) read_dump(r, main_loss[r], mtp_loss[r]);
    check("loss", main_loss, LABELS);
    check("mtp_loss", mtp_loss, MTP_LABELS);
    return test_end();
}
