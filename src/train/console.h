/*
 * console.h - the lines a person reads while a run is going on: one function a kind of line. Only
 * formatting; metrics.c decides when a line is due and has the numbers.
 */
#pragma once

#include "train/metrics.h"

#include <stdio.h>

struct console {
    FILE *out;
    bool colour;
    int64_t n_steps;
    double flop_per_token, peak_flops; /* as in run_identity */
    const char *peak_source;
};

struct run_summary {
    int64_t n_steps, n_tokens; /* done by this process */
    int64_t n_skipped;         /* since the run's first step */
    int64_t n_rollbacks;       /* of this part of it */
    double wall_s;
    double median_tok_s; /* over the steps without the first; of the first when it is the only */
    double time_s[N_TIMES];
    double loss;      /* of the last step; when n_steps is 0 that of the checkpoint, NaN: none */
    double eval_loss; /* of the last evaluation; NaN: none */
};

/* Colours suit out: it is a terminal, and neither NO_COLOR nor TERM=dumb is set. */
bool console_wants_colour(FILE *out);

/* left_s: seconds to the end of the run; below 0: not known yet, the line is marked as that of the
 * first step. */
void console_step(const struct console *c, const struct step_report *r, double left_s);
void console_eval(const struct console *c, const struct eval_report *r);
void console_sample(const struct console *c, int64_t step, const char *text); /* in one line */
void console_checkpoint(const struct console *c, const struct checkpoint_report *r);
void console_summary(const struct console *c, const struct run_summary *s);
