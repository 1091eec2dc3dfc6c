/* rundir.c - see rundir.h. */
#include "train/rundir.h"

#include "ckpt/io.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *rundir_metrics(const char *dir, char *path, size_t n)
{
    CHECK_CODE(CODE_CONFIG, snprintf(path, n, "%s/metrics.jsonl", dir) < (int)n,
               "run.dir is longer than %zu bytes", n);
    return path;
}

/* Nothing lies in it, or an empty metrics.jsonl: a run was killed as soon as it had begun. */
static bool is_empty_dir(const char *path, DIR *dir)
{
    char file[PATH_MAX];
    struct stat st;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (strcmp(entry->d_name, "metrics.jsonl") != 0) return false;
        if (stat(rundir_metrics(path, file, sizeof file), &st) != 0 || st.st_size > 0) return false;
    }
    return true;
}

static void make_dirs(const char *dir)
{
    struct fault fault = {0};
    CHECK_CODE(CODE_CONFIG, strlen(dir) < PATH_MAX, "run.dir is longer than %d bytes", PATH_MAX);
    const int bad = io_try_make_dirs(dir, &fault);
    CHECK_CODE(fault.code, !bad, "run.dir: %s", fault.why);
}

/* For reading; NULL: it is not there, or is no plain file. */
static FILE *open_metrics(const char *dir, char path[PATH_MAX])
{
    struct stat st;
    rundir_metrics(dir, path, PATH_MAX);
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "r") : NULL;
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

void rundir_claim(const struct config *cfg)
{
    const struct config_run *run = &cfg->run;
    DIR *dir = opendir(run->dir);
    if (!dir && errno == ENOENT) {
        make_dirs(run->dir);
        return;
    }
    CHECK_CODE(CODE_IO, dir, "run.dir: cannot open %s: %s", run->dir, strerror(errno));
    const bool empty = is_empty_dir(run->dir, dir), again = !strcmp(run->resume, "auto");
    closedir(dir);
    CHECK_CODE(CODE_CONFIG, run->overwrite || empty || (again && is_of_this_run(cfg)),
               "run.dir: %s is not empty; name another directory or set run.overwrite=true",
               run->dir);
}

/* Whether a line is of a step up to this one, or an identity; has_eval: it is the evaluation after
 * it. A last line that a crash has cut is neither. */
static bool is_kept(const char *line, int64_t step, bool *has_eval)
{
    json_t *o = json_loads(line, 0, NULL);
    const json_t *at = json_object_get(o, "step");
    const bool kept = json_object_get(o, "version") || (at && json_integer_value(at) <= step);
    if (kept && at && json_integer_value(at) == step && json_object_get(o, "eval_loss"))
        *has_eval = true;
    json_decref(o);
    return kept;
}

bool rundir_cut_metrics(const char *dir, int64_t step)
{
    char path[PATH_MAX], fresh[PATH_MAX + 8], *line = NULL;
    size_t cap = 0;
    bool has_eval = false;
    FILE *in = open_metrics(dir, path);
    if (!in) return false;
    snprintf(fresh, sizeof fresh, "%s.tmp", path);
    FILE *out = fopen(fresh, "w");
    CHECK_CODE(CODE_IO, out, "cannot open %s: %s", fresh, strerror(errno));
    while (getline(&line, &cap, in) > 0)
        if (is_kept(line, step, &has_eval)) fputs(line, out);
    free(line);
    fclose(in);
    const bool good = fflush(out) == 0 && fsync(fileno(out)) == 0;
    CHECK_CODE(CODE_IO, fclose(out) == 0 && good && rename(fresh, path) == 0, "writing %s: %s",
               fresh, strerror(errno));
    return has_eval;
}
