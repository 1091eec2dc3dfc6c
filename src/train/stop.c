/* stop.c - the end of a run before its last step; see stop.h. */
#include "train/stop.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/place.h"
#include "base/signals.h"
#include "train/save.h"

#include <stdio.h>
#include <unistd.h>

#define SAVE_RATE 1e9 /* bytes a second of a rank, rather too many than too few */

static double begin_s;

void stop_begin(void)
{
    begin_s = clock_s();
    signals_install();
}

void stop_prepare(const struct run *run)
{
    signals_answer(run->cfg->checkpoint.on_signal ? SIGNALS_NOTE : SIGNALS_DIE);
}

void stop_check_time(const struct run *run, double step_s)
{
    static bool warned;
    const double patience = signals_launcher_patience();
    const double save_s = (double)run->plan.balanced.role[ROLE_CHECKPOINT] / SAVE_RATE;
    if (warned || run->mesh.rank != 0 || !run->cfg->checkpoint.on_signal || patience < 0 ||
        step_s + save_s <= patience)
        return;
    warned = true;
    warn_line("Ctrl-C or SIGTERM would lose the work since the last checkpoint: mpirun kills its "
              "ranks after %g s, a step and a save take about %.2g s. `kill -USR1 %ld` saves and "
              "stops; started by scripts/mpirun.sh, Ctrl-C does, too",
              patience, step_s + save_s, (long)getppid());
}

static bool time_is_up(const struct run *run)
{
    const double minutes = run->cfg->run.exit_after;
    return minutes > 0 && clock_s() - begin_s >= 60 * minutes;
}

void stop_tell(const struct run *run, struct agreed *mine)
{
    mine->time_up = time_is_up(run);
    mine->stop = signals_noted() || mine->time_up > 0;
}

enum exit_code stop_save(struct run *run)
{
    const char *why = signals_noted();
    if (!why) why = run->agreed.time_up > 0 ? "run.exit_after" : "a signal to another rank";
    place_stage("end after step", run->progress.step);
    const bool saved = save_now(run);
    if (run->mesh.rank == 0)
        printf("stopped by %s after step %lld of %lld: %s\n", why, (long long)run->progress.step,
               (long long)run->cfg->train.steps,
               !saved               ? "not saved"
               : run->resumes_again ? "saved, the same command resumes from here"
                                    : "saved, run.resume=auto resumes from here");
    return saved ? CODE_REQUEUE : CODE_IO;
}
