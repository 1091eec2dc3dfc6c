/*
 * dump.c - debug.dump_step: what the model said about every token of one step, for comparing
 * layouts and for finding bad data.
 */
#include "base/err.h"
#include "base/path.h"
#include "train/run.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* JSON has no NaN: null keeps the place of a number that is not finite. */
static json_t *losses_of(const float *loss, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, isfinite(loss[i]) ? json_real(loss[i]) : json_null());
    return list;
}

/* [n][K] expert ids of tokens at .. at + n of this rank in one layer. */
static json_t *experts_of(const struct model *m, const struct layer *l, int64_t at, int64_t n)
{
    const int32_t *expert = m->flow.acts[l->index].expert;
    json_t *tokens = json_array();
    for (int64_t i = at; i < at + n; i++) {
        json_t *ids = json_array();
        for (int k = 0; k < m->K; k++)
            json_array_append_new(ids, json_integer(expert[i * m->K + k]));
        json_array_append_new(tokens, ids);
    }
    return tokens;
}

/* Tokens at .. at + n of this rank, all of one sequence, which start at position `first` in it. */
static void dump_part(const struct run *run, FILE *out, int64_t sample, int64_t at, int64_t n)
{
    const struct model *m = &run->model;
    const struct flow *f = &m->flow;
    const int64_t flat = first_token(m) + at;
    json_t *line = json_object(), *mtp = json_array(), *experts = json_object();
    json_object_set_new(line, "sample", json_integer(sample));
    json_object_set_new(line, "first", json_integer(flat % f->T));
    json_object_set_new(line, "loss", losses_of(f->token_loss[0] + at, n));
    for (int k = 1; k <= m->n_mtp; k++)
        json_array_append_new(mtp, losses_of(f->token_loss[k] + at, n));
    json_object_set_new(line, "mtp_loss", mtp);
    for (int l = 0; l < m->n_layers; l++) {
        if (m->layer[l].moe < 0) continue;
        char name[16];
        snprintf(name, sizeof name, "%d", l);
        json_object_set_new(experts, name, experts_of(m, &m->layer[l], at, n));
    }
    json_object_set_new(line, "experts", experts);
    json_dumpf(line, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(line);
}

/* The step's first micro-batch replaces what an earlier run has left. */
static FILE *open_dump(const struct run *run, char path[PATH_BYTES], bool first)
{
    const long long step = (long long)run->progress.step + 1;
    path_print(path, "%s/dump-step-%lld", run->cfg->run.dir, step);
    CHECK_CODE(CODE_IO, mkdir(path, 0777) == 0 || errno == EEXIST, "%s: %s", path, strerror(errno));
    path_print(path, "%s/dump-step-%lld/rank-%05d.jsonl", run->cfg->run.dir, step, run->mesh.rank);
    FILE *out = fopen(path, first ? "w" : "a");
    CHECK_CODE(CODE_IO, out, "%s: %s", path, strerror(errno));
    return out;
}

void run_dump(struct run *run, const int64_t *sample)
{
    char path[PATH_BYTES];
    FILE *out = open_dump(run, path, sample == run->sample);
    const struct flow *f = &run->model.flow;
    const int64_t first = first_token(&run->model);
    for (int64_t at = 0; at < f->N;) {
        const int64_t flat = first + at, left = f->T - flat % f->T;
        const int64_t n = left < f->N - at ? left : f->N - at;
        dump_part(run, out, sample[flat / f->T], at, n);
        at += n;
    }
    CHECK_CODE(CODE_IO, fclose(out) == 0, "%s: %s", path, strerror(errno));
}
