/*
 * eval.c - the held-out loss: a token-weighted mean over the first sequences of the held-out set,
 * the same ones whatever the number of ranks, one source after the other. When those of a source
 * do not come out even, its last round is filled with sequences that have no labels, so that all
 * ranks take part in every exchange.
 */
#include "base/clock.h"
#include "base/place.h"
#include "train/nonfinite.h"

#include <math.h>

/* The n sequences of a source; this rank's in a round. Beyond the end: its first, not valid. */
static void request_round(struct run *run, int source, int64_t round, int64_t n)
{
    const int B = run->cfg->train.micro_batch;
    const int64_t first = (round * run->mesh.dp + run->mesh.axis[AXIS_DP].rank) * B;
    for (int b = 0; b < B; b++) {
        run->valid[b] = first + b < n;
        run->wanted[b] =
            dataset_number_of(run->heldout_data, source, run->valid[b] ? first + b : 0);
    }
    reader_request(run->heldout_reader, run->wanted, B);
}

/* All ranks have their batch of this round, and none wishes to stop. */
static bool round_begins(struct run *run)
{
    run_agree(run);
    if (run->agreed.no_data > 0) run_agree_data(run);
    return run->agreed.stop == 0;
}

/* The n sequences of a source: sums[0] becomes their loss and sums[1] the number of labels, of this
 * rank's share. False: the run is to stop. */
static bool eval_source(struct run *run, int source, int64_t n, double sums[2])
{
    struct model *m = &run->model;
    const int64_t together = (int64_t)m->flow.B * run->mesh.dp;
    int64_t n_label[1 + MAX_MTP] = {0};
    bool complete = true;
    for (int64_t round = 0; round < (n + together - 1) / together; round++) {
        request_round(run, source, round, n);
        const struct batch *batch = reader_try_wait(run->heldout_reader, &run->data_fault);
        complete = round_begins(run);
        if (!complete) break;
        model_load(m, batch->token, batch->doc_start, run->valid);
        model_count_labels(m, batch->token, batch->doc_start, run->valid, n_label);
        model_forward(m, false);
    }
    run->be->copy(run->stream, &sums[0], m->loss_sum, sizeof(double));
    run->be->zero(run->stream, m->loss_sum, sizeof(double));
    run->be->stream_sync(run->stream);
    sums[1] = (double)n_label[0] / run->mesh.tp; /* every tp rank counted the whole micro-batch */
    return complete;
}

static struct eval_loss loss_of(const char *path, const double sums[2])
{
    return (struct eval_loss){path, (int64_t)(sums[1] + 0.5), sums[1] > 0 ? sums[0] / sums[1] : 0};
}

/* Losses of other data, of which the number of tokens tells most, cannot be compared. */
static void note_loss(struct run *run, const struct eval_report *r)
{
    const struct ckpt_best *best = &run->best;
    const struct eval_loss *all = &r->all;
    run->evaluated = (struct ckpt_best){r->step, all->tokens, all->loss};
    run->new_best = run->cfg->checkpoint.keep_best && all->tokens > 0 && isfinite(all->loss) &&
                    (all->tokens != best->tokens || all->loss < best->loss);
    if (run->new_best) run->best = run->evaluated;
}

bool run_eval(struct run *run)
{
    const double start = clock_s();
    place_stage("evaluation after step", run->progress.step);
    const struct dataset *ds = run->heldout_data;
    const int64_t asked = run->cfg->train.eval_sequences, have = dataset_samples(ds);
    const int64_t n = asked > 0 && asked < have ? asked : have;
    double sums[MAX_SOURCES][2] = {{0}}, all[2] = {0};
    struct eval_report report = {.step = run->progress.step,
                                 .token_bytes = dataset_token_bytes(ds),
                                 .n_sources = dataset_sources(ds)};
    bool complete = true;
    for (int s = 0; s < report.n_sources && complete; s++)
        complete = eval_source(run, s, dataset_taken(ds, s, n), sums[s]);
    comm_all_reduce_host(&run->comm, AXIS_WORLD, sums[0], 2 * report.n_sources, REDUCE_SUM);
    for (int s = 0; s < report.n_sources; s++) {
        report.source[s] = loss_of(dataset_source_info(ds, s).path, sums[s]);
        for (int i = 0; i < 2; i++) all[i] += sums[s][i];
    }
    report.all = loss_of(NULL, all);
    report.bad = nonfinite_take_count(run);
    report.seconds = clock_s() - start;
    comm_take_count(&run->comm); /* not part of any step */
    if (!complete) return false;
    metrics_eval(run->metrics, &report);
    note_loss(run, &report);
    return true;
}
