/* run_log.c - see run_log.h. */
#include "report/run_log.h"

#include "base/path.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct series *s, double x, double y)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 256;
        s->x = realloc(s->x, (size_t)s->room * sizeof *s->x);
        s->y = realloc(s->y, (size_t)s->room * sizeof *s->y);
        CHECK(s->x && s->y, "no memory for %lld points", (long long)s->room);
    }
    s->x[s->n] = x;
    s->y[s->n++] = y;
}

/* The number at the key; null and what is no number are NaN. */
static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void add_load(struct run_log *log, double step, const json_t *load)
{
    const int n = (int)json_array_size(load);
    if (n > log->n_layers) {
        log->load = realloc(log->load, (size_t)n * sizeof *log->load);
        CHECK(log->load, "no memory for %d layers", n);
        memset(log->load + log->n_layers, 0, (size_t)(n - log->n_layers) * sizeof *log->load);
        log->n_layers = n;
    }
    for (int i = 0; i < n; i++) {
        const json_t *x = json_array_get(load, (size_t)i);
        add(&log->load[i], step, json_is_number(x) ? json_number_value(x) : NAN);
    }
}

static void add_step(struct run_log *log, double step, const json_t *o)
{
    const double before = log->skipped.n > 0 ? log->skipped.y[log->skipped.n - 1] : 0;
    const double skipped = number(o, "skipped");
    add(&log->loss, step, number(o, "loss"));
    add(&log->mtp_loss, step, number(o, "mtp_loss"));
    add(&log->grad_norm, step, number(o, "grad_norm"));
    add(&log->lr, step, number(o, "lr"));
    add(&log->tok_s, step, number(o, "tok_s"));
    add(&log->bias_low, step, number(o, "bias_min"));
    add(&log->bias_high, step, number(o, "bias_max"));
    if (skipped > before) add(&log->skipped, step, skipped);
    add_load(log, step, json_object_get(o, "expert_load"));
    log->tokens = number(o, "tokens");
}

static void copy_text(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text ? text : "");
}

static void add_identity(struct run_log *log, const json_t *o)
{
    const json_t *mesh = json_object_get(o, "mesh"), *params = json_object_get(o, "params");
    copy_text(log->version, sizeof log->version, json_string_value(json_object_get(o, "version")));
    snprintf(log->mesh, sizeof log->mesh, "dp %.0f x tp %.0f, ep %.0f", number(mesh, "dp"),
             number(mesh, "tp"), number(mesh, "ep"));
    log->params = number(params, "total");
    log->params_active = number(params, "active");
    if (json_object_get(o, "resumed_step")) add(&log->restart, number(o, "resumed_step"), 0);
}

static void add_object(struct run_log *log, const json_t *o)
{
    const double step = number(o, "step");
    if (json_object_get(o, "version")) add_identity(log, o);
    if (json_object_get(o, "rollback")) add(&log->rollback, step, 0);
    if (isnan(step)) return;
    if (json_object_get(o, "loss")) add_step(log, step, o);
    if (json_object_get(o, "eval_loss")) add(&log->heldout, step, number(o, "eval_loss"));
    if (json_object_get(o, "ckpt_stall_s")) add(&log->stall, step, number(o, "ckpt_stall_s"));
}

int run_log_try_read(struct run_log *log, const char *run_dir, struct fault *fault)
{
    char path[PATH_BYTES], *line = NULL;
    size_t room = 0;
    int bad = 0, number_of_line = 0;
    *log = (struct run_log){.name = run_dir};
    FILE *in = fopen(path_print(path, "%s/metrics.jsonl", run_dir), "r");
    if (!in) return fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
    for (ssize_t n; !bad && (n = getline(&line, &room, in)) > 0;) {
        json_error_t why;
        json_t *o = json_loadb(line, (size_t)n, 0, &why);
        number_of_line++;
        if (json_is_object(o))
            add_object(log, o);
        else if (line[n - 1] == '\n')
            bad = fault_set(fault, CODE_DATA, "%s:%d: expected a JSON object: %s", path,
                            number_of_line, o ? "it is another value" : why.text);
        json_decref(o);
    }
    free(line);
    fclose(in);
    if (!bad && log->loss.n == 0) bad = fault_set(fault, CODE_DATA, "%s: it has no step", path);
    return bad;
}

void run_log_free(struct run_log *log)
{
    struct series *all[] = {&log->loss,     &log->mtp_loss,  &log->heldout, &log->grad_norm,
                            &log->lr,       &log->tok_s,     &log->stall,   &log->skipped,
                            &log->bias_low, &log->bias_high, &log->restart, &log->rollback};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->x);
        free(all[i]->y);
    }
    for (int i = 0; i < log->n_layers; i++) {
        free(log->load[i].x);
        free(log->load[i].y);
    }
    free(log->load);
    *log = (struct run_log){0};
}
