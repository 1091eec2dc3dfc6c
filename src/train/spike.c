/* spike.c - see spike.h. */
#include "train/spike.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/text.h"
#include "train/restore.h"
#include "train/save.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool spike_wanted(const struct run *run)
{
    return run->cfg->train.on_spike == ON_SPIKE_ROLLBACK;
}

void spike_note(struct run *run, int rank, const char *reason, const char *what)
{
    run->spike = (struct spike){true, rank, reason, NAN, NAN, ""};
    snprintf(run->spike.what, sizeof run->spike.what, "%s", what);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *x, int n)
{
    double sorted[CKPT_RECENT];
    memcpy(sorted, x, sizeof *x * (size_t)n);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    return 0.5 * (sorted[n / 2] + sorted[(n - 1) / 2]);
}

/* limit: how many times the median, 0: any. */
static bool is_above(struct run *run, const char *reason, double value, const double *before,
                     double limit)
{
    const int n = run->recent.n;
    if (limit == 0 || n < run->cfg->train.spike_window) return false;
    const double middle = median(before, n);
    if (value <= limit * middle) return false;
    run->spike = (struct spike){true, 0, reason, value, middle, ""};
    snprintf(run->spike.what, sizeof run->spike.what,
             "the %s is %g, more than %g times %g, the median of the %d steps before it",
             strcmp(reason, "loss") != 0 ? "gradient norm" : "loss", value, limit, middle, n);
    return true;
}

void spike_look(struct run *run, const struct step_report *r)
{
    const struct config_train *t = &run->cfg->train;
    struct ckpt_recent *recent = &run->recent;
    const int size = t->spike_window;
    if (recent->n > size) { /* of a run with a larger window */
        const size_t bytes = sizeof(double) * (size_t)size;
        memmove(recent->loss, recent->loss + recent->n - size, bytes);
        memmove(recent->grad_norm, recent->grad_norm + recent->n - size, bytes);
        recent->n = size;
    }
    if (run->spike.seen || is_above(run, "loss", r->loss, recent->loss, t->spike_loss) ||
        is_above(run, "grad_norm", r->grad_norm, recent->grad_norm, t->spike_grad_norm))
        return;
    if (recent->n == size) {
        const size_t bytes = sizeof(double) * (size_t)(size - 1);
        memmove(recent->loss, recent->loss + 1, bytes);
        memmove(recent->grad_norm, recent->grad_norm + 1, bytes);
        recent->n--;
    }
    recent->loss[recent->n] = r->loss;
    recent->grad_norm[recent->n++] = r->grad_norm;
}

/* What was asked for beyond the last step: nothing of it is used. A fault stays the reader's. */
static void drain_reader(struct run *run)
{
    const int batch = schedule_global_batch(run->cfg, &run->progress);
    const int n = schedule_micro_batches(run->cfg, batch, run->mesh.dp);
    for (int i = 0; run->progress.step < run->cfg->train.steps && i < n; i++)
        reader_try_wait(run->train_reader, &run->data_fault);
}

static void end_run(struct run *run, int64_t step, const char *why)
{
    char text[512];
    snprintf(text, sizeof text, "step %lld: %s; %s", (long long)step, run->spike.what, why);
    AGREE(MPI_COMM_WORLD, run->mesh.rank != run->spike.rank, CODE_INTERNAL, text);
}

/* Those of the batches around the step; what the checkpoint, where the run is now, has already read
 * is in its weights. */
static struct range samples_around(const struct run *run, int64_t step)
{
    const struct config_train *t = &run->cfg->train;
    struct progress at = run->progress;
    struct range range;
    while (at.step < step - 1 - t->skip_before) at = run_after_step(run, &at);
    range.first = at.samples;
    while (at.step < step + t->skip_after) at = run_after_step(run, &at);
    range.end = at.samples;
    return range;
}

static void report(struct run *run, const struct rollback_report *r)
{
    metrics_rollback(run->metrics, r);
    if (run->mesh.rank == run->spike.rank)
        warn_line("step %lld: %s; back to the checkpoint of step %lld, samples %lld to %lld are "
                  "skipped (rollback %d of at most %d)",
                  (long long)r->spike_step, run->spike.what, (long long)r->step,
                  (long long)r->skip.first, (long long)r->skip.end - 1, r->n,
                  run->cfg->train.max_rollbacks);
}

void run_roll_back(struct run *run)
{
    const struct progress from = run->progress;
    place_stage("rollback after step", from.step);
    drain_reader(run);
    save_wait(run);
    if (run->rollbacks.n >= run->cfg->train.max_rollbacks)
        end_run(run, from.step, "all rollbacks of train.max_rollbacks are used");
    mem_thaw();
    if (!restore_older(run, from.step - 1 - run->cfg->train.skip_before))
        end_run(run, from.step, "there is no checkpoint to return to");
    const struct range range = samples_around(run, from.step);
    const bool fits = ranges_add(&run->skip, range.first, range.end) &&
                      ranges_add(&run->rollbacks.samples, range.first, range.end);
    CHECK(fits, "%d ranges of samples are skipped", run->skip.n);
    run->rollbacks.n++;
    const struct rollback_report r = {.n = run->rollbacks.n,
                                      .step = run->progress.step,
                                      .spike_step = from.step,
                                      .tokens = from.tokens - run->progress.tokens,
                                      .reason = run->spike.reason,
                                      .value = run->spike.value,
                                      .median = run->spike.median,
                                      .skip = range};
    report(run, &r);
    run_check_epochs(run);
    run->spike.seen = run->spoiled = false;
    run_request_step(run, &run->progress);
}
