/*
 * metrics.c - metrics.jsonl and when the console speaks; see metrics.h, docs/metrics.md. A line is
 * one write to a file opened for appending, so a run that is killed leaves whole lines behind and a
 * reader never sees half of one.
 */
#include "train/metrics.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "train/console.h"
#include "train/metrics_experts.h"
#include "train/rundir.h"
#include "train/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct metrics {
    const struct config *cfg;
    struct console console;
    bool writes; /* on rank 0 */
    int fd;
    bool warns;        /* a line that cannot be written is dropped: checkpoint.on_error */
    bool is_torn;      /* half of a line lies behind end */
    off_t end;         /* of the last whole line */
    int64_t n_dropped; /* lines */
    char path[PATH_BYTES];
    double start_s, first_done_s; /* when the run and when its second step began */
    double *tok_s;                /* of every step */
    struct run_summary sum;
    struct tensorboard *tensorboard; /* NULL: run.tensorboard is off */
};

/* The whole line or nothing of it. 0, or what is wrong as errno has it. */
static int put_line(struct metrics *mx, const char *line, size_t bytes)
{
    if (mx->is_torn && ftruncate(mx->fd, mx->end) != 0) return errno;
    mx->is_torn = false;
    mx->end = lseek(mx->fd, 0, SEEK_END);
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(mx->fd, line + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        const int error = n < 0 ? errno : EIO;
        mx->is_torn = done > 0 && ftruncate(mx->fd, mx->end) != 0;
        return error;
    }
    return 0;
}

static void set(json_t *object, const char *key, json_t *value)
{
    CHECK(json_object_set_new(object, key, value) == 0, "no memory for metric %s", key);
}

/* Every line ends with the time at which it was written. */
static void write_line(struct metrics *mx, json_t *object)
{
    char now[CLOCK_TEXT];
    set(object, "time", json_string(clock_utc(now)));
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    CHECK(text, "no memory for a line of %s", mx->path);
    tensorboard_add(mx->tensorboard, object);
    json_decref(object);
    const size_t bytes = strlen(text) + 1;
    text[bytes - 1] = '\n'; /* the terminating NUL is not needed any more */
    const int error = put_line(mx, text, bytes);
    free(text);
    if (!error) return;
    CHECK_CODE(CODE_IO, mx->warns, "writing %s: %s", mx->path, strerror(error));
    if (mx->n_dropped++ == 0)
        warn_line("writing %s: %s; lines that cannot be written are left out", mx->path,
                  strerror(error));
}

/* JSON has no NaN: a number that is not finite is null, never left out and never averaged away. */
static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *hex(uint64_t x)
{
    return json_sprintf("%016llx", (unsigned long long)x);
}

static json_t *identity_object(const struct mesh *mesh, const struct run_identity *id)
{
    json_t *object = json_object(), *m = json_object(), *data = json_object(),
           *params = json_object();
    set(m, "dp", json_integer(mesh->dp));
    set(m, "tp", json_integer(mesh->tp));
    set(m, "ep", json_integer(mesh->ep));
    set(m, "edp", json_integer(mesh->edp));
    set(m, "ranks", json_integer(mesh->size));
    set(m, "nodes", json_integer(mesh->n_nodes));
    set(data, "train", hex(id->train_fingerprint));
    set(data, "heldout", id->heldout_fingerprint ? hex(id->heldout_fingerprint) : json_null());
    set(params, "total", json_integer(id->params_total));
    set(params, "active", json_integer(id->params_active));
    set(object, "version", json_string(id->version));
    set(object, "config_hash", hex(id->config_hash));
    set(object, "mesh", m);
    set(object, "fingerprints", data);
    set(object, "params", params);
    set(object, "flop_per_token", real(id->flop_per_token));
    set(object, "peak_flops", id->peak_flops > 0 ? real(id->peak_flops) : json_null());
    set(object, "peak_source", json_string(id->peak_source));
    if (id->resumed) set(object, "resumed_step", json_integer(id->first_step));
    return object;
}

static void open_file(struct metrics *mx, int how)
{
    mx->fd = open(mx->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | how, 0666);
    CHECK_CODE(CODE_IO, mx->fd >= 0, "cannot open %s: %s", mx->path, strerror(errno));
}

struct metrics *metrics_open(const struct config *cfg, const struct mesh *mesh,
                             const struct run_identity *id)
{
    struct metrics *mx = mem_alloc(sizeof *mx, "metrics");
    if (mesh->rank != 0) return mx;
    mx->cfg = cfg;
    mx->writes = true;
    mx->start_s = clock_s();
    mx->sum.loss = id->last_loss;
    mx->sum.eval_loss = NAN;
    mx->tok_s = mem_alloc(sizeof(double) * (size_t)(cfg->train.steps + 1), "step rates");
    mx->console = (struct console){.out = stdout,
                                   .colour = console_wants_colour(stdout),
                                   .n_steps = cfg->train.steps,
                                   .flop_per_token = id->flop_per_token,
                                   .peak_flops = id->peak_flops,
                                   .peak_source = id->peak_source};
    rundir_metrics(cfg->run.dir, mx->path);
    open_file(mx, id->goes_on ? 0 : O_TRUNC);
    if (cfg->run.tensorboard)
        mx->tensorboard = tensorboard_open(cfg->run.dir, id->goes_on, id->first_step);
    write_line(mx, identity_object(mesh, id)); /* nothing is lost yet: that one has to be written */
    mx->warns = cfg->checkpoint.on_error == ON_ERROR_WARN;
    return mx;
}

static void set_bad_losses(json_t *object, const struct bad_losses *bad)
{
    set(object, "bad_losses", json_integer(bad->n));
    if (bad->n > 0) set(object, "bad_rank", json_integer(bad->rank));
}

static json_t *step_object(const struct config *cfg, const struct step_report *r)
{
    json_t *o = json_object(), *labels = json_array(), *epoch = json_array();
    for (int i = 0; i < r->n_sources; i++) json_array_append_new(epoch, real(r->epoch[i]));
    for (int i = 0; i < r->n_stages; i++)
        json_array_append_new(labels, json_integer(r->n_label[i]));
    set(o, "step", json_integer(r->step));
    set(o, "tokens", json_integer(r->tokens));
    set(o, "epoch", epoch);
    set(o, "samples", json_integer(r->samples));
    set(o, "skipped_samples", json_integer(r->skipped_samples));
    set(o, "labels", labels);
    set(o, "loss", real(r->loss));
    set(o, "mtp_loss", real(r->mtp_loss));
    set(o, "balance_loss", real(r->balance_loss));
    set_bad_losses(o, &r->bad);
    set(o, "grad_norm", real(r->grad_norm));
    set(o, "skipped", json_integer(r->skipped));
    set(o, "lr", real(r->lr));
    set(o, "tok_s", real((double)r->step_tokens / r->step_s));
    set(o, "step_s", real(r->step_s));
    set(o, "compute_s", real(r->compute_s));
    set(o, "comm_s", real(r->comm_s));
    set(o, "memory_bytes", json_integer(r->memory_bytes));
    set(o, "bytes_intra", json_integer(r->bytes_intra));
    set(o, "bytes_inter", json_integer(r->bytes_inter));
    metrics_set_experts(o, cfg, r);
    set(o, "dropped", json_integer(r->dropped));
    set(o, "bias_min", real(r->bias_min));
    set(o, "bias_max", real(r->bias_max));
    if (cfg->debug.token_hash) set(o, "token_hash", hex(r->token_hash));
    return o;
}

static void add_to_summary(struct metrics *mx, const struct step_report *r)
{
    struct run_summary *sum = &mx->sum;
    if (sum->n_steps <= mx->cfg->train.steps)
        mx->tok_s[sum->n_steps] = (double)r->step_tokens / r->step_s;
    sum->n_steps++;
    sum->n_tokens += r->step_tokens;
    sum->n_skipped = r->skipped;
    sum->loss = r->loss;
    for (int i = 0; i < N_TIMES; i++)
        if (i != TIME_EVAL) sum->time_s[i] += r->time_s[i]; /* that comes from metrics_eval */
}

void metrics_step(struct metrics *mx, const struct step_report *r)
{
    if (!mx->writes) return;
    write_line(mx, step_object(mx->cfg, r));
    add_to_summary(mx, r);
    const double now = clock_s();
    const int64_t n_steps = mx->cfg->train.steps, n_timed = mx->sum.n_steps - 1;
    if (n_timed == 0) mx->first_done_s = now;
    const int log_every = mx->cfg->train.log_every;
    const bool due = log_every > 0 && r->step % log_every == 0;
    if (!due && n_timed > 0 && r->step != n_steps) return;
    const double each = n_timed > 0 ? (now - mx->first_done_s) / (double)n_timed : 0.0;
    console_step(&mx->console, r, n_timed > 0 ? each * (double)(n_steps - r->step) : -1.0);
}

static json_t *sources_array(const struct eval_report *r)
{
    json_t *all = json_array();
    for (int s = 0; s < r->n_sources; s++) {
        json_t *o = json_object();
        set(o, "path", json_string(r->source[s].path));
        set(o, "loss", r->source[s].tokens > 0 ? real(r->source[s].loss) : json_null());
        set(o, "tokens", json_integer(r->source[s].tokens));
        json_array_append_new(all, o);
    }
    return all;
}

void metrics_eval(struct metrics *mx, const struct eval_report *r)
{
    if (!mx->writes) return;
    json_t *o = json_object();
    set(o, "step", json_integer(r->step));
    set(o, "eval_loss", real(r->all.loss));
    set_bad_losses(o, &r->bad);
    set(o, "eval_tokens", json_integer(r->all.tokens));
    if (r->token_bytes > 0) set(o, "eval_bits_per_byte", real(eval_bits_per_byte(r)));
    set(o, "eval_s", real(r->seconds));
    if (r->n_sources > 1) set(o, "eval_sources", sources_array(r));
    write_line(mx, o);
    mx->sum.eval_loss = r->all.loss;
    mx->sum.time_s[TIME_EVAL] += r->seconds;
    console_eval(&mx->console, r);
}

void metrics_sample(struct metrics *mx, int64_t step, const char *text)
{
    if (!mx->writes) return;
    json_t *o = json_object();
    set(o, "step", json_integer(step));
    set(o, "sample", json_string(text));
    write_line(mx, o);
    console_sample(&mx->console, step, text);
}

void metrics_checkpoint(struct metrics *mx, const struct checkpoint_report *r)
{
    if (!mx->writes) return;
    json_t *o = json_object();
    set(o, "step", json_integer(r->step));
    set(o, "ckpt_bytes", json_integer(r->bytes));
    set(o, "ckpt_stall_s", real(r->stall_s));
    set(o, "ckpt_write_s", real(r->write_s));
    write_line(mx, o);
    console_checkpoint(&mx->console, r);
}

void metrics_rollback(struct metrics *mx, const struct rollback_report *r)
{
    if (!mx->writes) return;
    CHECK_CODE(CODE_IO, close(mx->fd) == 0, "closing %s: %s", mx->path, strerror(errno));
    rundir_cut_metrics(mx->cfg->run.dir, r->step, r->n - 1);
    open_file(mx, 0);
    mx->is_torn = false; /* half a line was cut off as well */
    if (mx->tensorboard) {
        tensorboard_close(mx->tensorboard);
        mx->tensorboard = tensorboard_open(mx->cfg->run.dir, true, r->step);
    }
    json_t *o = json_object(), *skip = json_array();
    json_array_append_new(skip, json_integer(r->skip.first));
    json_array_append_new(skip, json_integer(r->skip.end));
    set(o, "step", json_integer(r->step));
    set(o, "rollback", json_integer(r->n));
    set(o, "spike_step", json_integer(r->spike_step));
    set(o, "reason", json_string(r->reason));
    set(o, "value", real(r->value));
    set(o, "median", real(r->median));
    set(o, "skip_samples", skip);
    write_line(mx, o);
    struct run_summary *sum = &mx->sum; /* of the steps that count */
    sum->n_steps -= r->spike_step - r->step;
    sum->n_tokens -= r->tokens;
    sum->n_rollbacks++;
    if (sum->n_steps < 0) sum->n_steps = sum->n_tokens = 0; /* to before where this part began */
}

void metrics_param_hash(struct metrics *mx, uint64_t hash, double l2)
{
    if (!mx->writes) return;
    json_t *o = json_object();
    set(o, "param_hash", hex(hash));
    set(o, "param_l2", real(l2));
    write_line(mx, o);
    fprintf(mx->console.out, "parameters  hash: %016llx  L2: %.17g\n", (unsigned long long)hash,
            l2);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int64_t n)
{
    if (n == 0) return 0.0;
    qsort(x, (size_t)n, sizeof *x, compare);
    return 0.5 * (x[n / 2] + x[(n - 1) / 2]);
}

void metrics_close(struct metrics *mx)
{
    if (mx->writes) {
        struct run_summary *sum = &mx->sum;
        sum->wall_s = clock_s() - mx->start_s;
        const int skip = sum->n_steps > 1; /* the first pays for warming up */
        sum->median_tok_s = median(mx->tok_s + skip, sum->n_steps - skip);
        console_summary(&mx->console, sum);
        if (mx->n_dropped > 0)
            warn_line("%s lacks %lld line%s that could not be written", mx->path,
                      (long long)mx->n_dropped, text_s(mx->n_dropped));
        const bool closed = close(mx->fd) == 0;
        CHECK_CODE(CODE_IO, closed || mx->warns, "closing %s: %s", mx->path, strerror(errno));
        if (!closed) warn_line("closing %s: %s", mx->path, strerror(errno));
        tensorboard_close(mx->tensorboard);
        mem_free(mx->tok_s);
    }
    mem_free(mx);
}
