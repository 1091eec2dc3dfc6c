/* Means are over all labels of the global batch, whoever holds them: ranks and micro-batches with
 * few labels, with none at all, or without any for the MTP module train as one rank does. */
// TEST ranks=1 timeout=100 cores=2
#include "data_fixture.h"

#include <jansson.h>
#include <math.h>

/* Samples of 32 inputs: one document that fills it; sixteen documents of two tokens (16 labels, no
 * MTP label); documents of one token (no label); the last token of each sample opens the next. */
enum { T = FIXTURE_T, LONG = 0, PAIRS = 1, SINGLES = 2 };

static const char *make_shard(const char *name, const int *kind, int n_samples)
{
    static int length[1024];
    int n = 0;
    for (int s = 0; s < n_samples; s++)
        for (int left = T; left > 0; left -= length[n++])
            length[n] = kind[s] == LONG ? T : kind[s] == PAIRS ? 2 : 1;
    return fixture_shard(name, FIXTURE_VOCAB, fixture_id, 0, (int64_t)n_samples * T + 1, length, n);
}

/* Trains in a directory NAME-HOW, with metrics, output and a dump of step 1 in it. */
static void train(const char *name, const char *shard, const char *how, int n_ranks,
                  const char *overrides)
{
    char command[3000];
    snprintf(command, sizeof command,
             "timeout 60 mpirun --quiet --oversubscribe --bind-to none -np %d $DSV3_BUILD/dsv3 "
             "train tests/tiny.yaml run.dir=%s/%s-%s data.train=%s data.document_mask=true "
             "data.shuffle=false train.global_batch=2 train.steps=3 debug.dump_step=1 %s "
             "</dev/null",
             n_ranks, test_tmpdir(), name, how, shard, overrides);
    const int status = system(command);
    EXPECT(status == 0, "%s-%s ended with status %#x", name, how, (unsigned)status);
}

/* The same in one rank at once, one after the other, over dp and over tp. 1e-6: the sums of F32
 * gradients in another order. */
static void train_all_ways(const char *name, const char *shard, const char *overrides)
{
    static const struct {
        const char *how, *overrides;
        int ranks;
    } ways[] = {{"at-once", "train.micro_batch=2", 1},
                {"in-turn", "train.micro_batch=1", 1},
                {"dp2", "train.micro_batch=1", 2},
                {"tp2", "train.micro_batch=2 topology.tp=2", 2}};
    char all[256], command[2048];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(all, sizeof all, "%s %s", ways[i].overrides, overrides);
        train(name, shard, ways[i].how, ways[i].ranks, all);
        if (i == 0) continue;
        snprintf(command, sizeof command,
                 "perl tests/compare_metrics 1e-6 %1$s/%2$s-at-once/metrics.jsonl "
                 "%1$s/%2$s-%3$s/metrics.jsonl",
                 test_tmpdir(), name, ways[i].how);
        EXPECT(system(command) == 0, "%s: %s differs from one rank at once", name, ways[i].how);
    }
}

/* Number of `key` of the first step of a run. */
static double first_step(const char *run, const char *key)
{
    char path[700], line[65536];
    double value = -1;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", test_tmpdir(), run);
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    while (in && value < 0 && fgets(line, sizeof line, in)) {
        json_t *o = json_loads(line, 0, NULL);
        if (json_object_get(o, "loss")) value = json_number_value(json_object_get(o, key));
        json_decref(o);
    }
    if (in) fclose(in);
    return value;
}

/* Losses that are not zero, and all of them added up, in the dump of a run on one rank. */
struct losses {
    int n, n_mtp;
    double sum, sum_mtp;
};

static void add_losses(const json_t *list, int *n, double *sum)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const double x = json_number_value(json_array_get(list, i));
        *n += x != 0; /* of an untrained model: about ln 512; without a label exactly zero */
        *sum += x;
    }
}

static struct losses read_dump(const char *run)
{
    char path[700], line[65536];
    struct losses all = {0};
    snprintf(path, sizeof path, "%s/%s/dump-step-1/rank-00000.jsonl", test_tmpdir(), run);
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    while (in && fgets(line, sizeof line, in)) {
        json_t *o = json_loads(line, 0, NULL);
        add_losses(json_object_get(o, "loss"), &all.n, &all.sum);
        add_losses(json_array_get(json_object_get(o, "mtp_loss"), 0), &all.n_mtp, &all.sum_mtp);
        json_decref(o);
    }
    if (in) fclose(in);
    return all;
}

/* Reported means are the dumped losses over the counts; 1e-6: they were F32. */
static void check_counts(const char *run, int n, int n_mtp)
{
    const struct losses got = read_dump(run);
    const double loss = first_step(run, "loss"), mtp_loss = first_step(run, "mtp_loss");
    EXPECT(got.n == n && got.n_mtp == n_mtp, "%s: %d labels, %d of the MTP module; expected %d, %d",
           run, got.n, got.n_mtp, n, n_mtp);
    EXPECT(fabs(loss - got.sum / n) < 1e-6 * loss, "%s: loss %.9g, dumped mean %.9g", run, loss,
           got.sum / n);
    if (n_mtp > 0)
        EXPECT(fabs(mtp_loss - got.sum_mtp / n_mtp) < 1e-6 * mtp_loss,
               "%s: MTP loss %.9g, dumped mean %.9g", run, mtp_loss, got.sum_mtp / n_mtp);
}

int main(void)
{
    static const int uneven[] = {LONG, PAIRS}, half[] = {SINGLES, LONG},
                     none[] = {SINGLES, SINGLES};
    const char *shard = make_shard("uneven.tok.zst", uneven, 2);
    train_all_ways("uneven", shard, "");
    check_counts("uneven-at-once", 31 + 16, 30);

    shard = make_shard("half.tok.zst", half, 2);
    train_all_ways("half", shard, "");
    check_counts("half-at-once", 31, 30);

    /* No label in the whole batch: a step that changes nothing but by decay. */
    shard = make_shard("none.tok.zst", none, 2);
    train("none", shard, "np2", 2, "train.micro_batch=1 train.balance_loss_alpha=0");
    EXPECT(first_step("none-np2", "loss") == 0 && first_step("none-np2", "mtp_loss") == 0 &&
               first_step("none-np2", "grad_norm") == 0,
           "without labels: loss %g, MTP loss %g, gradient norm %g", first_step("none-np2", "loss"),
           first_step("none-np2", "mtp_loss"), first_step("none-np2", "grad_norm"));
    return test_end();
}
