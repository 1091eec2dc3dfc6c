/* Means are over all labels of the global batch, whoever holds them: ranks and micro-batches with
 * few labels, with none at all, or without any for the MTP module train as one rank does. */
// TEST ranks=1 timeout=100 cores=2
#include "window_runs.h"

#include <math.h>

/* The same in one rank at once, one after the other, over dp and over tp. 3e-6: the sums of F32
 * gradients in another order; 1.5e-6 seen where the compiler does not vectorise them (-O1). */
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
        window_train(name, shard, ways[i].how, ways[i].ranks, all);
        if (i == 0) continue;
        snprintf(command, sizeof command,
                 "perl tests/compare_metrics 3e-6 %1$s/%2$s-at-once/metrics.jsonl "
                 "%1$s/%2$s-%3$s/metrics.jsonl",
                 test_tmpdir(), name, ways[i].how);
        EXPECT(system(command) == 0, "%s: %s differs from one rank at once", name, ways[i].how);
    }
}

/* Losses that are not zero, and all of them added up, in the dumps of a run's ranks. */
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
    char command[700], line[65536];
    struct losses all = {0};
    snprintf(command, sizeof command, "cat %s/%s/dump-step-1/rank-*.jsonl", test_tmpdir(), run);
    FILE *in = popen(command, "r");
    while (in && fgets(line, sizeof line, in)) {
        json_t *o = json_loads(line, 0, NULL);
        add_losses(json_object_get(o, "loss"), &all.n, &all.sum);
        add_losses(json_array_get(json_object_get(o, "mtp_loss"), 0), &all.n_mtp, &all.sum_mtp);
        json_decref(o);
    }
    if (in) pclose(in);
    return all;
}

/* Reported means are the dumped losses over the counts; 1e-6: they were F32. */
static void check_counts(const char *run, int n, int n_mtp)
{
    const struct losses got = read_dump(run);
    json_t *step = window_step(run, 1);
    const double loss = window_number(step, "loss"), mtp_loss = window_number(step, "mtp_loss");
    EXPECT(got.n == n && got.n_mtp == n_mtp, "%s: %d labels, %d of the MTP module; expected %d, %d",
           run, got.n, got.n_mtp, n, n_mtp);
    EXPECT(window_labels(step, 0) == n && window_labels(step, 1) == n_mtp,
           "%s: reported %d labels, %d of the MTP module; expected %d, %d", run,
           window_labels(step, 0), window_labels(step, 1), n, n_mtp);
    EXPECT(fabs(loss - got.sum / n) < 1e-6 * loss, "%s: loss %.9g, dumped mean %.9g", run, loss,
           got.sum / n);
    EXPECT(fabs(mtp_loss - got.sum_mtp / n_mtp) < 1e-6 * mtp_loss,
           "%s: MTP loss %.9g, dumped mean %.9g", run, mtp_loss, got.sum_mtp / n_mtp);
    json_decref(step);
}

/* Depths have counts of their own: max(length - 1 - k, 0) summed over the documents. */
static void check_depths(void)
{
    static const char *const windows[] = {"5 1 2 8 16", "32"};
    const char *shard = window_shard("depths.tok.zst", fixture_id, windows, 2);
    window_train("depths", shard, "np2", 2,
                 "train.steps=1 optimizer.warmup_steps=1 model.num_nextn_predict_layers=2");
    json_t *step = window_step("depths-np2", 1);
    for (size_t k = 0; k < 3; k++) {
        static const int want[] = {27 + 31, 23 + 30, 20 + 29};
        EXPECT(window_labels(step, k) == want[k], "depth %zu: %d labels, expected %d", k,
               window_labels(step, k), want[k]);
    }
    json_decref(step);
}

int main(void)
{
    /* 3 labels and 31; one document, and sixteen of two tokens, which have a label but none for the
     * MTP module; no label at all beside 31. */
    static const char *const few[] = {"4 1", "32"}, *const pairs[] = {"32", "2"},
                             *const half[] = {"1", "32"};
    const char *shard = window_shard("few.tok.zst", fixture_id, few, 2);
    train_all_ways("few", shard, "");
    check_counts("few-at-once", 3 + 31, 2 + 30);

    shard = window_shard("pairs.tok.zst", fixture_id, pairs, 2);
    train_all_ways("pairs", shard, "");
    check_counts("pairs-dp2", 31 + 16, 30);

    shard = window_shard("half.tok.zst", fixture_id, half, 2);
    train_all_ways("half", shard, "");
    check_counts("half-at-once", 31, 30);
    check_depths();
    return test_end();
}
