/* restore.c - see restore.h: which checkpoint, and whether it fits. load.c reads its tensors. */
#include "train/restore.h"

#include "base/err.h"
#include "base/place.h"
#include "base/text.h"
#include "ckpt/store.h"
#include "train/data_order.h"
#include "train/init_from.h"
#include "train/load.h"
#include "train/owner.h"
#include "train/rundir.h"
#include "train/save.h"
#include "train/spike.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The checkpoints that may be taken, in the order in which they are tried. Rank 0 knows them. */
struct candidates {
    char root[CKPT_PATH];
    int64_t *step; /* NULL: one, by its path */
    int n, next;
    bool named; /* run.resume is a path: there is no other choice */
    bool own;   /* of run.dir */
};

/* Whether the directory is this one, or lies in it. */
static bool is_within(const char *real, const char *dir)
{
    char b[PATH_MAX];
    if (!realpath(dir, b)) return false;
    const size_t n = strlen(b);
    return !strncmp(real, b, n) && (real[n] == '/' || real[n] == '\0');
}

/* Whether what run.resume names lies in run.dir. Where a checkpoint's own name leads to does not
 * matter, when that is a link: it is run.dir that has it. */
static bool is_own(const char *resume, const char *run_dir, const char *root)
{
    char dir[CKPT_PATH], real[PATH_MAX];
    store_resolve(dir, resume);
    for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/';) dir[--n] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = '\0';
    if (!realpath(slash ? dir : ".", real)) return false;
    return is_within(real, run_dir) || is_within(real, root);
}

/* run.dir's own come before one elsewhere that the run once started from. */
static void find_candidates(struct candidates *c, const struct config *cfg, const char *resume)
{
    struct fault fault = {0};
    int64_t *unfinished;
    *c = (struct candidates){0};
    if (!strcmp(resume, "none")) return;
    save_root(cfg, c->root);
    if (strcmp(resume, "auto") != 0 && is_own(resume, cfg->run.dir, c->root)) {
        c->named = c->own = true;
        c->n = 1;
        return;
    }
    c->n = store_try_list(c->root, &c->step, &fault);
    CHECK_CODE(fault.code, c->n >= 0, "%s", fault.why);
    const int n = store_try_list_unfinished(c->root, &unfinished, &fault);
    for (int i = 0; i < n; i++)
        warn_line("%s/step-%08" PRId64 ".tmp is unfinished; ignored", c->root, unfinished[i]);
    free(unfinished);
    c->own = c->n > 0;
    if (c->own || !strcmp(resume, "auto")) return;
    c->named = true;
    c->n = 1;
}

/* The newest checkpoint before a broken one beside it, for whoever named that; or nothing. */
static void offer(const char *broken, char text[CKPT_PATH + 64])
{
    char root[CKPT_PATH], dir[CKPT_PATH], real[PATH_MAX];
    struct fault fault = {0};
    int64_t *steps = NULL;
    *text = '\0';
    if (!realpath(broken, real)) return;
    path_print(root, "%s", real);
    char *slash = strrchr(root, '/');
    if (!slash || slash == root) return;
    *slash = '\0';
    const int n = store_try_list(root, &steps, &fault);
    for (int i = 0; i < n && !*text; i++) {
        struct manifest m;
        if (strcmp(store_path(dir, root, steps[i]), real) >= 0) continue;
        if (!manifest_try_read(&m, dir, &fault))
            snprintf(text, CKPT_PATH + 64, "; the one before it: run.resume=%s", dir);
        manifest_free(&m);
    }
    free(steps);
}

/* What run.resume names cannot be taken: that is the end, there is no other choice. */
static _Noreturn void refuse_named(const char *dir, const struct fault *fault)
{
    char before[CKPT_PATH + 64];
    offer(dir, before);
    DIE(fault->code, "run.resume: %s%s", fault->why, before);
}

/* Differences, on rank 0: all of them are told before the run ends. */
static void check_fit(const struct run *run, const struct manifest *m, const char *dir)
{
    struct err_list refused = {0}, taken = {0};
    const uint64_t tokenizer = dataset_tokenizer(run->train_data);
    const uint64_t heldout = run->heldout_data ? dataset_fingerprint(run->heldout_data) : 0;
    const struct ckpt_state *s = &m->state;
    config_compare(m->config, run->cfg, &refused, &taken);
    data_order_check(run, m, &refused, &taken);
    if (s->tokenizer_fingerprint != 0 && s->tokenizer_fingerprint != tokenizer)
        err_add(&refused,
                "data.train: tokenizer %016" PRIx64 " in the checkpoint, %016" PRIx64 " now",
                s->tokenizer_fingerprint, tokenizer);
    if (s->heldout_fingerprint != heldout)
        err_add(&taken,
                "held-out data: fingerprint %016" PRIx64 " in the checkpoint, %016" PRIx64 " now",
                s->heldout_fingerprint, heldout);
    if (refused.n == 0) load_check_tensors(run, m, &refused);
    if (taken.n > 0) printf("settings that differ from those of %s:\n%s", dir, taken.text);
    if (refused.n > 0) fputs(refused.text, stderr);
    fflush(stdout);
    CHECK_CODE(CODE_CONFIG, refused.n == 0, "%s does not fit this run: %d difference%s", dir,
               refused.n, text_s(refused.n));
    err_free(&refused);
    err_free(&taken);
}

/* Where the run goes on. */
static void set_progress(struct run *run, const struct manifest *m)
{
    const struct ckpt_state *s = &m->state;
    const bool same_heldout =
        run->heldout_data && s->heldout_fingerprint == dataset_fingerprint(run->heldout_data);
    const bool has_best = run->resumed_own && run->cfg->checkpoint.keep_best && same_heldout;
    run->progress = (struct progress){.step = s->step,
                                      .tokens = s->tokens,
                                      .samples = s->samples,
                                      .passed = s->passed,
                                      .skipped = s->skipped};
    run->skipped_in_row = s->skipped_in_row;
    run->last_loss = s->loss;
    run->evaluated = (struct ckpt_best){s->step, 0, s->heldout_loss};
    run->best = has_best ? s->best : (struct ckpt_best){0};
    run->recent = spike_wanted(run) ? s->recent : (struct ckpt_recent){0};
}

/* What earlier rollbacks pass over, unless the samples have other numbers now. */
static void set_rollbacks(struct run *run, const struct ckpt_state *s, bool renumbered)
{
    const struct ranges *set = &s->rollbacks.samples;
    run->rollbacks = s->rollbacks;
    if (renumbered) {
        run->rollbacks.samples.n = 0;
        const int64_t ahead = ranges_count(set, s->samples, INT64_MAX);
        if (ahead > 0 && run->mesh.rank == 0)
            printf("resume  %" PRId64
                   " samples ahead that a rollback passes over have other numbers "
                   "now, and are trained on\n",
                   ahead);
    }
    for (int i = 0; i < run->rollbacks.samples.n; i++)
        CHECK_CODE(CODE_CONFIG, ranges_add(&run->skip, set->at[i].first, set->at[i].end),
                   "more than %d ranges of samples are skipped", MAX_RANGES);
}

static void say_resumed(const struct run *run, const struct manifest *m, const char *dir)
{
    char tokens[TEXT_NUMBER];
    const struct ckpt_state *s = &m->state;
    if (run->mesh.rank != 0) return;
    printf("resume  %s: step %" PRId64
           ", %s tokens; written by %d rank%s (dp %d x tp %d, ep %d) of "
           "version %s; parameters' hash %016" PRIx64 "\n",
           dir, s->step, text_grouped(tokens, s->tokens), s->ranks, text_s(s->ranks), s->dp, s->tp,
           s->ep, m->version, s->param_hash);
    fflush(stdout);
}

/* Rank 0's next candidate with a good manifest, on every rank; false: no more. */
static bool next_candidate(struct run *run, struct candidates *c, char dir[CKPT_PATH],
                           struct manifest *m)
{
    char *text = NULL;
    struct fault fault = {0};
    while (run->mesh.rank == 0 && !text && c->next < c->n) {
        if (c->named)
            store_resolve(dir, run->cfg->run.resume);
        else
            store_path(dir, c->root, c->step[c->next]);
        c->next++;
        if (!manifest_try_read(m, dir, &fault)) text = manifest_to_text(m);
        manifest_free(m);
        if (!text && c->named) refuse_named(dir, &fault);
        if (!text) warn_line("skipping checkpoint %s (%s)", dir, fault.why);
    }
    char *shared = mesh_broadcast_text(text ? text : "");
    char *where = mesh_broadcast_text(text ? dir : "");
    free(text);
    path_print(dir, "%s", where);
    const bool found = *shared;
    if (found) {
        const int bad = manifest_try_parse(m, shared, dir, &fault);
        CHECK(!bad, "%s", fault.why);
    }
    free(where);
    free(shared);
    return found;
}

/* The newest checkpoint of run.dir, whole or not; -1: none. */
static int64_t newest_in(const struct config *cfg)
{
    char root[CKPT_PATH];
    struct fault fault = {0};
    int64_t *steps;
    const int n = store_try_list(save_root(cfg, root), &steps, &fault);
    CHECK_CODE(fault.code, n >= 0, "%s", fault.why);
    const int64_t newest = n > 0 ? steps[0] : -1;
    free(steps);
    return newest;
}

/* How long another run that may be at work in run.dir is looked at. The other ranks wait. */
static double patience_s(const struct config *cfg)
{
    return fmin(OWNER_PATIENCE_S, cfg->run.deadline_s / 2);
}

/* What lies in run.dir, if nobody else is changing it. */
static void look_at_dir(struct run *run)
{
    struct fault fault = {0};
    const int bad = owner_try_look(run->cfg->run.dir, patience_s(run->cfg), &fault);
    CHECK_CODE(fault.code, !bad, "%s", fault.why);
    run->newest = newest_in(run->cfg);
}

/* The first candidate that is whole; false: none is. at_start: a run begins with it, and does not
 * return to it. */
static bool take_first(struct run *run, struct candidates *c, bool at_start)
{
    struct manifest m = {0};
    struct fault fault;
    char dir[CKPT_PATH];
    bool done = false;
    while (!done && next_candidate(run, c, dir, &m)) {
        if (at_start && run->mesh.rank == 0) check_fit(run, &m, dir);
        done = load_try_all(run, &m, dir, &fault) == 0;
        if (done) {
            double own = run->mesh.rank == 0 && c->own;
            comm_all_reduce_host(&run->comm, AXIS_WORLD, &own, 1, REDUCE_MAX);
            run->resumed_own = own > 0;
            set_progress(run, &m);
            if (at_start) say_resumed(run, &m, dir);
            const bool renumbered = data_order_resume(run, &m);
            if (at_start) set_rollbacks(run, &m.state, renumbered);
        } else if (run->mesh.rank == 0) {
            if (c->named) refuse_named(dir, &fault);
            warn_line("skipping checkpoint %s (%s)", dir, fault.why);
        }
        manifest_free(&m);
    }
    return done;
}

void run_resume(struct run *run)
{
    struct candidates c = {0};
    if (run->mesh.rank == 0) {
        look_at_dir(run);
        find_candidates(&c, run->cfg, run->cfg->run.resume);
    }
    run->resumes_again = strcmp(run->cfg->run.resume, "none") != 0 && !(c.named && c.own);
    const bool done = take_first(run, &c, true);
    const bool none = run->mesh.rank == 0 && !done && c.n > 0;
    CHECK_CODE(
        CODE_DATA, !none,
        "%s: none of %d checkpoints is whole; run.resume=none with run.overwrite=true starts "
        "anew",
        c.root, c.n);
    free(c.step);
    run->resumed = done;
}

/* A run that starts anew where an old one was, as it was told to: the checkpoints of that would be
 * taken for this one's. */
static void remove_checkpoints(const struct run *run)
{
    char root[CKPT_PATH];
    struct fault fault = {0};
    int64_t *steps;
    if (!run->cfg->run.overwrite) return;
    const int n = store_try_list(save_root(run->cfg, root), &steps, &fault);
    if (n > 0)
        warn_line("run.overwrite: removing all checkpoints of an earlier run in %s, the newest of "
                  "step %lld",
                  root, (long long)steps[0]);
    free(steps);
    const int bad = n < 0 ? -1 : store_try_clear(root, &fault);
    CHECK_CODE(fault.code, !bad, "%s", fault.why);
}

/* At the start only: later the run itself has written newer ones. */
static void warn_of_missing_save(const struct run *run)
{
    char root[CKPT_PATH];
    const int64_t last = rundir_last_save(run->cfg->run.dir);
    if (last > run->newest)
        warn_line("metrics.jsonl reports a checkpoint of step %lld that is not in %s any more; its "
                  "steps after %lld are trained again",
                  (long long)last, save_root(run->cfg, root), (long long)run->progress.step);
}

/* Later checkpoints are broken, or of steps that will be done again. */
static void set_later_aside(const struct run *run)
{
    char root[CKPT_PATH];
    struct fault fault = {0};
    const int n = store_try_set_aside(save_root(run->cfg, root), run->progress.step, &fault);
    CHECK_CODE(fault.code, n >= 0, "%s", fault.why);
    if (n > 0) printf("resume  renamed %d later checkpoints to *.left\n", n);
}

/* It is as it was when this run looked. */
static int try_look_again(const struct run *run, struct fault *fault)
{
    if (newest_in(run->cfg) != run->newest)
        return fault_set(fault, CODE_CONFIG,
                         "run.dir: another run was at work in %s until now; start this one again",
                         run->cfg->run.dir);
    return run->resumed_own ? 0 : rundir_try_claim(run->cfg, fault);
}

/* From here on run.dir is this run's; it is made when it is not there. */
static void own_dir(struct run *run)
{
    struct fault fault = {0};
    int bad = run->resumed_own ? 0 : rundir_try_claim(run->cfg, &fault);
    if (!bad) {
        run->owner = owner_try_claim(run->cfg->run.dir, patience_s(run->cfg), &fault);
        bad = !run->owner || try_look_again(run, &fault);
    }
    if (bad) owner_free(run->owner);
    CHECK_CODE(fault.code, !bad, "%s", fault.why);
}

/* run.dir's, or the one elsewhere that the run has started from. */
static void find_older(struct candidates *c, const struct config *cfg, int64_t latest)
{
    char root[CKPT_PATH];
    const char *resume = cfg->run.resume;
    const bool is_path = strcmp(resume, "none") != 0 && strcmp(resume, "auto") != 0;
    const bool elsewhere = is_path && !is_own(resume, cfg->run.dir, save_root(cfg, root));
    find_candidates(c, cfg, elsewhere ? resume : "auto");
    while (c->step && c->next + 1 < c->n && c->step[c->next] > latest) c->next++;
}

bool restore_older(struct run *run, int64_t latest)
{
    struct candidates c = {0};
    if (run->mesh.rank == 0) find_older(&c, run->cfg, latest);
    const bool done = take_first(run, &c, false);
    free(c.step);
    if (!done) return false;
    if (run->mesh.rank == 0) set_later_aside(run);
    save_is_at(run, run->progress.step);
    return true;
}

void run_begin(struct run *run)
{
    double has_eval = 0;
    struct init_from init;
    place_at("weights");
    init_from_open(&init, run);
    if (run->mesh.rank == 0) own_dir(run);
    if (run->mesh.rank == 0 && run->resumed_own) {
        warn_of_missing_save(run);
        set_later_aside(run);
        has_eval = rundir_cut_metrics(run->cfg->run.dir, run->progress.step, run->rollbacks.n);
    } else if (run->mesh.rank == 0) {
        remove_checkpoints(run);
    }
    comm_all_reduce_host(&run->comm, AXIS_WORLD, &has_eval, 1, REDUCE_MAX);
    run->has_eval = has_eval > 0;
    if (!run->resumed) {
        optim_init_weights(&run->optim);
        init_from_load(&init, run);
    }
    init_from_close(&init);
}
