/* console.c - torchtitan-like lines of `key: value` for people; see console.h. */
#include "train/console.h"

#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLOUR_KEY "\033[36m"
#define COLOUR_LOSS "\033[32m"
#define COLOUR_OFF "\033[0m"

/* Open MPI gives every rank a pseudo-terminal, also when mpirun writes to a file; there mpirun's
 * own standard output decides. */
static bool launcher_has_terminal(void)
{
    if (!getenv("OMPI_COMM_WORLD_RANK")) return true;
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/1", (long)getppid());
    const int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool yes = isatty(fd);
    close(fd);
    return yes;
}

bool console_wants_colour(FILE *out)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no_color && *no_color) return false;
    if (term && !strcmp(term, "dumb")) return false;
    return isatty(fileno(out)) && launcher_has_terminal();
}

/* 61.2 -> 1:01, 3725 -> 1:02:05 */
static const char *clock_text(char text[TEXT_NUMBER], double seconds)
{
    const long long s = llround(seconds);
    if (s >= 3600)
        snprintf(text, TEXT_NUMBER, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, TEXT_NUMBER, "%lld:%02lld", s / 60, s % 60);
    return text;
}

/* Whoever read the lines may have gone; metrics.jsonl has them all. */
static void flush(const struct console *c)
{
    static bool warned;
    const bool bad = fflush(c->out) != 0 || ferror(c->out);
    if (bad && !warned)
        warn_line("standard output cannot be written (%s); training continues, metrics.jsonl has "
                  "every step",
                  strerror(errno));
    warned |= bad;
}

static void key(const struct console *c, const char *name)
{
    fprintf(c->out, c->colour ? COLOUR_KEY "%s:" COLOUR_OFF " " : "%s: ", name);
}

static void put_step(const struct console *c, const char *name, int64_t step)
{
    const int width = snprintf(NULL, 0, "%lld", (long long)c->n_steps);
    key(c, name);
    fprintf(c->out, "%*lld/%lld  ", width, (long long)step, (long long)c->n_steps);
}

/* The mean over all tokens: not a number when one loss is none, and then it says how many. */
static void put_loss(const struct console *c, double loss, const struct bad_losses *bad)
{
    key(c, "loss");
    fprintf(c->out, c->colour ? COLOUR_LOSS "%.5f" COLOUR_OFF "  " : "%.5f  ", loss);
    if (bad->n == 0) return;
    key(c, "not finite");
    fprintf(c->out, "%lld, first on rank %d  ", (long long)bad->n, bad->rank);
}

/* The largest max / mean over the MoE layers; 0 without such layers. */
static double worst_load(const struct step_report *r)
{
    double worst = 0.0;
    for (int i = 0; i < r->n_moe_layers; i++) worst = fmax(worst, r->expert_load[i]);
    return worst;
}

/* GFLOP/s up to ten thousand of them, then TFLOP/s. */
static bool in_tera(double flops)
{
    return flops >= 1e13;
}

static void put_speed(const struct console *c, double tok_s)
{
    char text[TEXT_NUMBER];
    const double flops = tok_s * c->flop_per_token;
    key(c, "tps");
    fprintf(c->out, "%s  ", text_grouped(text, llround(tok_s)));
    key(c, in_tera(flops) ? "tflops" : "gflops");
    fprintf(c->out, "%.1f", flops / (in_tera(flops) ? 1e12 : 1e9));
    if (c->peak_flops > 0.0) fprintf(c->out, " (%.1f%% of peak)", 100.0 * flops / c->peak_flops);
    fputs("  ", c->out);
}

void console_step(const struct console *c, const struct step_report *r, double left_s)
{
    char text[TEXT_NUMBER];
    put_step(c, "step", r->step);
    put_loss(c, r->loss, &r->bad);
    key(c, "grad_norm");
    fprintf(c->out, r->grad_norm < 1e6 ? "%.4f  " : "%.3e  ", r->grad_norm);
    key(c, "lr");
    fprintf(c->out, "%.1e  ", r->lr);
    put_speed(c, (double)r->step_tokens / r->step_s);
    if (r->n_moe_layers > 0) {
        key(c, "load");
        fprintf(c->out, "%.2f  ", worst_load(r));
    }
    if (left_s < 0.0) {
        fputs("(first step)\n", c->out);
    } else {
        key(c, "eta");
        fprintf(c->out, "%s\n", clock_text(text, left_s));
    }
    flush(c);
}

void console_eval(const struct console *c, const struct eval_report *r)
{
    char text[TEXT_NUMBER];
    put_step(c, "eval", r->step);
    put_loss(c, r->all.loss, &r->bad);
    if (r->token_bytes > 0) {
        key(c, "bpb");
        fprintf(c->out, "%.4f  ", eval_bits_per_byte(r));
    }
    key(c, "tokens");
    fprintf(c->out, "%s  ", text_grouped(text, r->all.tokens));
    key(c, "time");
    fprintf(c->out, "%.2f s", r->seconds);
    for (int s = 0; r->n_sources > 1 && s < r->n_sources; s++) {
        fputs(s ? ", " : "  ", c->out);
        if (s == 0) key(c, "sources");
        if (r->source[s].tokens > 0)
            fprintf(c->out, "%.5f", r->source[s].loss);
        else
            fputc('-', c->out);
    }
    fputc('\n', c->out);
    flush(c);
}

void console_sample(const struct console *c, int64_t step, const char *text)
{
    put_step(c, "text", step);
    for (; *text; text++) fputc(*text == '\n' ? ' ' : *text, c->out);
    fputc('\n', c->out);
    flush(c);
}

static void put_peak(const struct console *c, double flops)
{
    const bool tera = in_tera(flops);
    const double unit = tera ? 1e12 : 1e9;
    const char *name = tera ? "TFLOP/s" : "GFLOP/s";
    if (c->peak_flops > 0.0)
        fprintf(c->out, "  speed      %.1f of %.1f %s: %.1f%% of the peak (%s)\n", flops / unit,
                c->peak_flops / unit, name, 100.0 * flops / c->peak_flops, c->peak_source);
    else
        fprintf(c->out, "  speed      %.1f %s; the machine's peak is not known\n", flops / unit,
                name);
}

void console_checkpoint(const struct console *c, const struct checkpoint_report *r)
{
    fprintf(c->out, "saved:   step %lld, %.1f MB in %.2f s (%.2f GB/s), steps waited %.1f ms\n",
            (long long)r->step, (double)r->bytes * 1e-6, r->write_s,
            (double)r->bytes * 1e-9 / r->write_s, r->stall_s * 1e3);
    flush(c);
}

/* Nothing where there is none: a run that had nothing to do has that of its checkpoint. */
static void put_losses(const struct console *c, const struct run_summary *s)
{
    const bool any = s->n_steps > 0 || isfinite(s->loss), held_out = isfinite(s->eval_loss);
    if (!any && !held_out) return;
    fputs("  loss       ", c->out);
    if (any)
        fprintf(c->out, "%.5f in %s", s->loss,
                s->n_steps > 0 ? "the last step" : "the last step before, by the checkpoint");
    if (held_out) fprintf(c->out, "%sheld-out %.5f", any ? ", " : "", s->eval_loss);
    fputs(" (nats a token)\n", c->out);
}

void console_summary(const struct console *c, const struct run_summary *s)
{
    static const char *const phase[N_TIMES] = {"data", "forward and backward", "communication",
                                               "optimizer", "evaluation"};
    char text[TEXT_NUMBER];
    fprintf(c->out, "done: %lld step%s", (long long)s->n_steps, text_s(s->n_steps));
    if (s->n_skipped > 0) fprintf(c->out, " (%lld skipped)", (long long)s->n_skipped);
    if (s->n_rollbacks > 0)
        fprintf(c->out, " after %lld rollback%s", (long long)s->n_rollbacks,
                text_s(s->n_rollbacks));
    fprintf(c->out, ", %s tokens", text_grouped(text, s->n_tokens));
    fprintf(c->out, ", %s\n", clock_text(text, s->wall_s));
    if (s->n_steps > 0) {
        fprintf(c->out, "  tokens/s   %s, %s\n", text_grouped(text, llround(s->median_tok_s)),
                s->n_steps > 1 ? "median of the steps without the first" : "first step");
        put_peak(c, s->median_tok_s * c->flop_per_token);
    }
    fputs("  time       ", c->out);
    for (int i = 0; i < N_TIMES; i++)
        fprintf(c->out, "%s%s %.2f s", i > 0 ? ", " : "", phase[i], s->time_s[i]);
    fputc('\n', c->out);
    put_losses(c, s);
    flush(c);
}
