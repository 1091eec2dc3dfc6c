/* nonfinite.c - see nonfinite.h: which number, of which rank, and what becomes of the step. */
#include "train/nonfinite.h"

#include "base/err.h"
#include "train/save.h"
#include "train/spike.h"

#include <math.h>
#include <stdio.h>

int nonfinite_loss(const struct run *run)
{
    for (int k = 0; k < run->model.n_mtp + 2; k++)
        if (!isfinite(run->h_loss[k])) return k;
    return -1;
}

struct bad_losses nonfinite_take_count(struct run *run)
{
    struct model *m = &run->model;
    int64_t mine = 0;
    RUN(run, copy, &mine, m->n_bad_loss, sizeof mine);
    RUN(run, zero, m->n_bad_loss, sizeof mine);
    RUN(run, stream_sync);
    double all = (double)mine;
    comm_all_reduce_host(&run->comm, AXIS_WORLD, &all, 1, REDUCE_SUM);
    if (all == 0) return (struct bad_losses){0};
    return (struct bad_losses){(int64_t)all, comm_lowest_rank(&run->comm, mine > 0)};
}

/* What was copied before is good: its save is not cut off. */
static void end_run(struct run *run, bool speaks, const char *why)
{
    save_wait(run);
    AGREE(MPI_COMM_WORLD, !speaks, CODE_INTERNAL, why);
}

/* The rank at fault speaks. The gradients of a step that is skipped must not reach the next. */
static void skip_step(struct run *run, int rank, const char *what)
{
    const long long step = (long long)run->progress.step + 1;
    const int most = run->cfg->train.max_nonfinite_steps;
    const bool speaks = run->mesh.rank == rank;
    char why[384];
    optim_zero_gradients(&run->optim);
    if (spike_wanted(run)) {
        spike_note(run, rank, "nonfinite", what);
        return;
    }
    snprintf(why, sizeof why,
             "step %lld: %s; no weight has changed; %d steps in a row were skipped before it, "
             "train.max_nonfinite_steps %d",
             step, what, run->skipped_in_row, most);
    if (run->skipped_in_row == most) end_run(run, speaks, why);
    run->progress.skipped++;
    run->skipped_in_row++;
    if (speaks)
        warn_line("step %lld: %s; step skipped, no weight has changed (%d in a row, at most %d)",
                  step, what, run->skipped_in_row, most);
}

void nonfinite_skip_loss(struct run *run, int mine)
{
    const int n_mtp = run->model.n_mtp;
    const int first = comm_lowest_rank(&run->comm, mine >= 0);
    CHECK(first < run->mesh.size,
          "the sum of all ranks' losses is not finite, but each of them is");
    char what[80], stage[32] = "loss";
    if (mine > 0) snprintf(stage, sizeof stage, "loss of MTP depth %d", mine);
    if (mine == n_mtp + 1) snprintf(stage, sizeof stage, "balance loss");
    snprintf(what, sizeof what, "the %s of this rank's tokens is not finite", stage);
    skip_step(run, first, what);
}

void nonfinite_skip_gradient(struct run *run, double norm)
{
    const struct optim_fault fault = optim_find_fault(&run->optim, norm);
    char what[192];
    if (isfinite(norm))
        snprintf(what, sizeof what,
                 "the gradient of %s is too large for F32 moments without optimizer.clip: norm %g",
                 fault.param->name, norm);
    else
        snprintf(what, sizeof what, "the gradient of %s is not finite", fault.param->name);
    skip_step(run, fault.rank, what);
}

void nonfinite_end_update(struct run *run, const struct step_report *r)
{
    const struct optim_spoiled at = optim_find_spoiled(&run->optim);
    char what[256], why[512];
    snprintf(what, sizeof what,
             "the update has made the %s of %s, element %lld, %g (learning rate %g, gradient norm "
             "%g)",
             at.what ? at.what : "", at.param->name, (long long)at.element, at.value, r->lr,
             r->grad_norm);
    if (spike_wanted(run)) {
        spike_note(run, at.rank, "nonfinite", what);
        return;
    }
    snprintf(why, sizeof why,
             "step %lld: %s; nothing of this step is saved; resume with a lower learning rate",
             (long long)r->step, what);
    end_run(run, run->mesh.rank == at.rank, why);
}

void nonfinite_inject(struct run *run)
{
    static const float value[] = {[BAD_NAN] = NAN, [BAD_INF] = INFINITY, [BAD_HUGE] = 1e38f};
    const struct config_debug *d = &run->cfg->debug;
    if (d->bad_grad_step != run->progress.step + 1 || d->bad_grad_rank != run->mesh.rank) return;
    if (run->rollbacks.n > 0) return; /* it came with samples that are passed over now */
    RUN(run, copy, param_find(&run->params, d->bad_grad_param)->grad, &value[d->bad_grad_value],
        sizeof *value);
}
