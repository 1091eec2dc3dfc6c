/*
 * eval.c - the held-out loss: a token-weighted mean over the first sequences of the held-out set,
 * the same ones whatever the number of ranks. When they do not come out even, the last round is
 * filled with sequences that have no labels, so that all ranks take part in every exchange.
 */
#include "base/clock.h"
#include "base/place.h"
#include "train/nonfinite.h"

/* Sequences of this rank in a round; beyond the end: sequence 0, not valid. */
static void request_round(struct run *run, int64_t round, int64_t n)
{
    const int B = run->cfg->train.micro_batch;
    const int64_t first = (round * run->mesh.dp + run->mesh.axis[AXIS_DP].rank) * B;
    for (int b = 0; b < B; b++) {
        run->valid[b] = first + b < n;
        run->wanted[b] = run->valid[b] ? first + b : 0;
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

/* Losses over the evaluated tokens: their sum and number, over all ranks. */
static void add_up(struct run *run, int64_t n_label, double sums[2])
{
    run->be->copy(run->stream, &sums[0], run->model.loss_sum, sizeof(double));
    run->be->zero(run->stream, run->model.loss_sum, sizeof(double));
    run->be->stream_sync(run->stream);
    sums[1] = (double)n_label / run->mesh.tp; /* every tp rank counted the whole micro-batch */
    comm_all_reduce_host(&run->comm, AXIS_WORLD, sums, 2, REDUCE_SUM);
}

bool run_eval(struct run *run)
{
    const double start = clock_s();
    place_stage("evaluation after step", run->progress.step);
    struct model *m = &run->model;
    const int B = m->flow.B, asked = run->cfg->train.eval_sequences;
    const int64_t have = dataset_samples(run->heldout_data);
    const int64_t n = asked > 0 && asked < have ? asked : have;
    const int64_t n_rounds = (n + (int64_t)B * run->mesh.dp - 1) / ((int64_t)B * run->mesh.dp);
    int64_t n_label[1 + MAX_MTP] = {0};
    bool complete = true;
    for (int64_t round = 0; round < n_rounds; round++) {
        request_round(run, round, n);
        const struct batch *batch = reader_try_wait(run->heldout_reader, &run->data_fault);
        complete = round_begins(run);
        if (!complete) break;
        model_load(m, batch->token, batch->doc_start, run->valid);
        model_count_labels(m, batch->token, batch->doc_start, run->valid, n_label);
        model_forward(m, false);
    }
    double sums[2];
    add_up(run, n_label[0], sums);
    const struct eval_report report = {.step = run->progress.step,
                                       .tokens = (int64_t)(sums[1] + 0.5),
                                       .loss = sums[1] > 0 ? sums[0] / sums[1] : 0,
                                       .bad = nonfinite_take_count(run),
                                       .seconds = clock_s() - start};
    comm_take_count(&run->comm); /* not part of any step */
    if (complete) metrics_eval(run->metrics, &report);
    return complete;
}
