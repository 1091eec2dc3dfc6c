/* rundir.c - see rundir.h. */
#include "train/rundir.h"

#include "ckpt/io.h"
#include "ckpt/store.h"
#include "train/owner.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *rundir_metrics(const char *dir, char path[PATH_BYTES])
{
    return path_print(path, "%s/metrics.jsonl", dir);
}

/* Nothing lies in it, or an empty metrics.jsonl: a run was killed as soon as it had begun. */
static bool is_empty_dir(const char *path, DIR *dir)
{
    char file[PATH_BYTES];
    struct stat st;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (owner_is_name(entry->d_name)) continue;
        if (strcmp(entry->d_name, "metrics.jsonl") != 0) return false;
        if (stat(rundir_metrics(path, file), &st) != 0 || st.st_size > 0) return false;
    }
    return true;
}

/* For reading; NULL: it is not there, or is neither a plain file nor a link to one. path: where the
 * file itself lies, so that what replaces it replaces no link. */
static FILE *open_metrics(const char *dir, char path[PATH_MAX])
{
    char name[PATH_BYTES];
    struct stat st;
    if (!realpath(rundir_metrics(dir, name), path)) return NULL;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "r") : NULL;
}

/* The identity line of the metrics has the hash of these settings. */
static bool is_of_this_run(const struct config *cfg)
{
    char path[PATH_MAX], want[17], *line = NULL;
    size_t cap = 0;
    snprintf(want, sizeof want, "%016llx", (unsigned long long)config_hash(cfg));
    FILE *in = open_metrics(cfg->run.dir, path);
    json_t *o = in && getline(&line, &cap, in) > 0 ? json_loads(line, 0, NULL) : NULL;
    const char *hash = json_string_value(json_object_get(o, "config_hash"));
    const bool same = hash && !strcmp(hash, want);
    json_decref(o);
    free(line);
    if (in) fclose(in);
    return same;
}

int64_t rundir_last_save(const char *dir)
{
    char path[PATH_MAX], *line = NULL;
    size_t cap = 0;
    int64_t last = -1;
    FILE *in = open_metrics(dir, path);
    while (in && getline(&line, &cap, in) > 0) {
        json_t *o = json_loads(line, 0, NULL);
        if (json_object_get(o, "ckpt_bytes")) last = json_integer_value(json_object_get(o, "step"));
        json_decref(o);
    }
    free(line);
    if (in) fclose(in);
    return last;
}

/* Its checkpoints have been renamed, or moved, or their disk is away: they are somebody's. */
static int try_miss_saves(const struct config *cfg, struct fault *fault)
{
    char root[PATH_BYTES];
    int64_t *steps;
    const int64_t last = rundir_last_save(cfg->run.dir);
    const int n = store_try_list(path_print(root, "%s/checkpoints", cfg->run.dir), &steps, fault);
    free(steps);
    if (n < 0) return -1;
    if (n > 0 || last < 0) return 0;
    return fault_set(fault, CODE_CONFIG,
                     "run.dir: %s/metrics.jsonl reports a checkpoint of step %lld, but %s has none "
                     "(step-NNNNNNNN): name it with run.resume=PATH, or start anew with "
                     "run.overwrite=true",
                     cfg->run.dir, (long long)last, root);
}

int rundir_try_claim(const struct config *cfg, struct fault *fault)
{
    const struct config_run *run = &cfg->run;
    DIR *dir = opendir(run->dir);
    if (!dir && errno == ENOENT) {
        struct fault made = {0};
        return io_try_make_dirs(run->dir, &made)
                   ? fault_set(fault, made.code, "run.dir: %s", made.why)
                   : 0;
    }
    if (!dir)
        return fault_set(fault, CODE_IO, "run.dir: cannot open %s: %s", run->dir, strerror(errno));
    const bool empty = is_empty_dir(run->dir, dir), again = !strcmp(run->resume, "auto");
    closedir(dir);
    if (run->overwrite || empty) return 0;
    if (try_miss_saves(cfg, fault)) return -1;
    if (again && is_of_this_run(cfg)) return 0;
    return fault_set(fault, CODE_CONFIG,
                     "run.dir: %s is not empty; name another directory or set run.overwrite=true",
                     run->dir);
}

/* Whether a line is of a step up to this one, a rollback that the run has behind it, or an
 * identity; has_eval: it is the evaluation after it. A last line that a crash has cut is neither.
 */
static bool is_kept(const char *line, int64_t step, int rollbacks, bool *has_eval)
{
    json_t *o = json_loads(line, 0, NULL);
    const json_t *at = json_object_get(o, "step"), *rollback = json_object_get(o, "rollback");
    const bool kept = rollback
                          ? json_integer_value(rollback) <= rollbacks
                          : json_object_get(o, "version") || (at && json_integer_value(at) <= step);
    if (kept && at && json_integer_value(at) == step && json_object_get(o, "eval_loss"))
        *has_eval = true;
    json_decref(o);
    return kept;
}

bool rundir_cut_metrics(const char *dir, int64_t step, int rollbacks)
{
    char path[PATH_MAX], fresh[PATH_BYTES], *line = NULL;
    size_t cap = 0;
    bool has_eval = false;
    FILE *in = open_metrics(dir, path);
    if (!in) return false;
    path_print(fresh, "%s.tmp", path);
    FILE *out = fopen(fresh, "w");
    CHECK_CODE(CODE_IO, out, "cannot open %s: %s", fresh, strerror(errno));
    while (getline(&line, &cap, in) > 0)
        if (is_kept(line, step, rollbacks, &has_eval)) fputs(line, out);
    free(line);
    fclose(in);
    const bool good = fflush(out) == 0 && fsync(fileno(out)) == 0;
    CHECK_CODE(CODE_IO, fclose(out) == 0 && good && rename(fresh, path) == 0, "writing %s: %s",
               fresh, strerror(errno));
    return has_eval;
}
