/*
 * loop.c - the steps of a run, and what comes between them: evaluations, saves, and what ranks must
 * agree on before either, or before they stop.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "train/run.h"
#include "train/samples.h"
#include "train/save.h"
#include "train/spike.h"
#include "train/stop.h"

#include <stdio.h>

void run_agree_data(const struct run *run)
{
    AGREE(MPI_COMM_WORLD, run->data_fault.code == CODE_DONE, run->data_fault.code,
          run->data_fault.why);
}

void run_agree(struct run *run)
{
    run->agreed = (struct agreed){0};
    save_tell(run, &run->agreed);
    stop_tell(run, &run->agreed);
    run->agreed.no_data = run->data_fault.code != CODE_DONE;
    run->agreed.spoiled = run->spoiled;
    comm_all_reduce_host(&run->comm, AXIS_WORLD, (double *)&run->agreed, N_AGREED, REDUCE_SUM);
}

/* False: it is due, and the run is to stop before it or did within. */
static bool evaluate(struct run *run)
{
    const struct config_train *t = &run->cfg->train;
    const int64_t step = run->progress.step;
    const bool due = step > 0 && t->eval_every > 0 && step % t->eval_every == 0;
    if (!run->heldout_data || !(due || step == t->steps)) return true;
    return run->agreed.stop == 0 && run_eval(run);
}

static void end_loop(struct run *run)
{
    place_stage("end", -1);
    run_print_memory(run);
    if (run->cfg->debug.param_hash) {
        uint64_t hash;
        double l2;
        optim_param_hash(&run->optim, &hash, &l2);
        metrics_param_hash(run->metrics, hash, l2);
    }
    if (run->cfg->debug.profile && run->mesh.rank == 0) profile_print(stdout, &run->bounds);
}

/* At the end: whether the last steps of the run were skipped, which rank 0 tells. The next run of
 * the same command finds the same. */
static bool ended_skipping(const struct run *run)
{
    if (run->progress.step < run->cfg->train.steps || run->skipped_in_row == 0) return false;
    if (run->mesh.rank == 0)
        warn_line("the run is done, but its last %d step%s skipped, as a loss or gradient was not "
                  "finite: the weights are those of step %lld",
                  run->skipped_in_row, run->skipped_in_row == 1 ? " was" : "s were",
                  (long long)(run->progress.step - run->skipped_in_row));
    return true;
}

enum exit_code run_loop(struct run *run)
{
    const int64_t n_steps = run->cfg->train.steps, first = run->progress.step;
    bool evaluated = true;
    stop_prepare(run);
    if (run->resumed && !run->has_eval) { /* the run had ended before it */
        evaluated = evaluate(run);
        if (run->new_best) save_start(run);
    }
    if (run->progress.step < n_steps)
        run_request_step(run, &run->progress);
    else if (run->mesh.rank == 0)
        printf("nothing left to do: step %lld is done, train.steps is %lld\n", (long long)first,
               (long long)n_steps);
    while (run->progress.step < n_steps && run->agreed.stop == 0) {
        const double start = clock_s();
        run_step(run);
        if (run->spike.seen) {
            run_roll_back(run);
            continue;
        }
        if (run->progress.step > first + 1) stop_check_time(run, clock_s() - start);
        mem_freeze();
        evaluated = evaluate(run);
        if (run->agreed.stop == 0) samples_take(run);
        save_advance(run);
        if (save_due(run)) save_start(run);
    }
    enum exit_code code = CODE_DONE;
    if (run->progress.step < n_steps || !evaluated)
        code = stop_save(run);
    else if (run->cfg->checkpoint.on_exit)
        save_now(run);
    save_wait(run);
    end_loop(run);
    if (code == CODE_DONE && save_lost(run)) code = CODE_IO;
    return code == CODE_DONE && ended_skipping(run) ? CODE_INTERNAL : code;
}
