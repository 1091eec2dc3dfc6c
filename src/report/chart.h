/*
 * chart.h - pictures in SVG: curves over steps, and a map of layers by steps. They are written into
 * an HTML page, whose style sheet has the classes c0 .. c7 (colours), axis, grid, band, mark.
 */
#pragma once

#include "report/run_log.h"

#include <stdbool.h>
#include <stdio.h>

enum { MAX_CURVES = 24, N_COLOURS = 8 };

struct curve {
    const struct series *series;
    const char *label;
    int colour;
    bool dashed, dots; /* dots: of few points, each is drawn */
};

/* A vertical line at a step, with a text that appears under the pointer. */
struct mark {
    double x;
    const char *what;
    int colour;
};

struct chart {
    const char *title, *unit;
    bool log_y;
    int n_curves, n_marks;
    struct curve curve[MAX_CURVES];
    const struct mark *mark;
};

/* Nothing when no curve has two finite points. Many points are drawn as their means, with a band
 * from the least to the most. */
void chart_print(FILE *out, const struct chart *chart);

/* load [n_layers], a row each: 1 (even) is light, `most` and more is dark. */
void chart_print_map(FILE *out, const char *title, const struct series *load, int n_layers,
                     double most);

/* Text with &, <, > and " as HTML needs them. */
void chart_print_text(FILE *out, const char *text);
