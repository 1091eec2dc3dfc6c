/*
 * window_runs.h - training on windows made of documents of chosen lengths, by the program itself,
 * and numbers from its reports: for tests of what is a label and what means are over.
 */
#pragma once
#include "tests/data_fixture.h"

#include <jansson.h>
#include <math.h>

/* A shard of windows of FIXTURE_T tokens, one a text of n_windows: the lengths of its documents,
 * the last of which repeats until the window is full. One token more, of another document, ends it.
 */
static inline const char *window_shard(const char *name, uint32_t (*id)(int64_t),
                                       const char *const *windows, int n_windows)
{
    static int length[1024];
    int n = 0;
    for (int w = 0; w < n_windows; w++) {
        char *at = (char *)windows[w];
        for (int left = FIXTURE_T; left > 0; left -= length[n++]) {
            length[n] = (int)strtol(at, &at, 10);
            if (length[n] == 0) length[n] = length[n - 1]; /* the list has ended */
        }
    }
    return fixture_shard(name, FIXTURE_VOCAB, id, 0, (int64_t)n_windows * FIXTURE_T + 1, length, n);
}

/* Trains the model of tests/tiny.yaml three steps of two windows, in the directory NAME-HOW. */
static inline void window_train(const char *name, const char *shard, const char *how, int n_ranks,
                                const char *overrides)
{
    char command[3000];
    snprintf(command, sizeof command,
             "timeout 60 mpirun -np %d $DSV3_BUILD/dsv3 "
             "train tests/tiny.yaml run.dir=%s/%s-%s data.train=%s data.document_mask=true "
             "data.shuffle=false train.global_batch=2 train.steps=3 debug.dump_step=1 %s "
             "</dev/null",
             n_ranks, test_tmpdir(), name, how, shard, overrides);
    const int status = system(command);
    EXPECT(status == 0, "%s-%s ended with status %#x", name, how, (unsigned)status);
}

/* The report of a step of the run NAME-HOW; NULL when there is none. json_decref it. */
static inline json_t *window_step(const char *run, int step)
{
    char path[700], line[65536];
    json_t *found = NULL;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", test_tmpdir(), run);
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    while (in && !found && fgets(line, sizeof line, in)) {
        json_t *o = json_loads(line, 0, NULL);
        if (json_integer_value(json_object_get(o, "step")) == step && json_object_get(o, "loss"))
            found = json_incref(o);
        json_decref(o);
    }
    if (in) fclose(in);
    EXPECT(found, "%s has no step %d", run, step);
    return found;
}

/* A number of such a report; NaN when it is null or missing. */
static inline double window_number(const json_t *step, const char *key)
{
    const json_t *x = json_object_get(step, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* Labels of stage k. */
static inline int window_labels(const json_t *step, size_t k)
{
    return (int)json_integer_value(json_array_get(json_object_get(step, "labels"), k));
}
