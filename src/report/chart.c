/* chart.c - see chart.h. */
#include "report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The picture and the part of it that has the axes around it. */
enum { WIDTH = 640, HEIGHT = 300, LEFT = 64, RIGHT = 12, TOP = 30, BOTTOM = 28 };
enum { POINTS = 400, MAP_COLUMNS = 160, MAP_ROW = 14, N_SHADES = 10 };

struct range {
    double low, high;
};

struct axes {
    struct range x, y; /* y: of the logarithms when log_y */
    bool log_y;
};

void chart_print_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*text, out);
        }
    }
}

static double to_axis(const struct axes *a, double y)
{
    return a->log_y ? log10(y) : y;
}

static bool is_drawn(const struct axes *a, double y)
{
    return isfinite(y) && (!a->log_y || y > 0);
}

static double x_of(const struct axes *a, double x)
{
    return LEFT + (x - a->x.low) / (a->x.high - a->x.low) * (WIDTH - LEFT - RIGHT);
}

/* Of an axis value. What lies beyond is drawn at the edge. */
static double y_of(const struct axes *a, double y)
{
    const double part = (y - a->y.low) / (a->y.high - a->y.low);
    return HEIGHT - BOTTOM - fmin(fmax(part, 0), 1) * (HEIGHT - TOP - BOTTOM);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The values between which the curves lie, without the highest hundredth: the first steps of a run
 * and its spikes would leave no room for the rest. */
static struct range find_y(const struct chart *c, const struct axes *a)
{
    int64_t n = 0, room = 0;
    for (int i = 0; i < c->n_curves; i++) room += c->curve[i].series->n;
    double *all = malloc((size_t)(room + 1) * sizeof *all);
    CHECK(all, "no memory for %lld points", (long long)room);
    for (int i = 0; i < c->n_curves; i++)
        for (int64_t j = 0; j < c->curve[i].series->n; j++)
            if (is_drawn(a, c->curve[i].series->y[j]))
                all[n++] = to_axis(a, c->curve[i].series->y[j]);
    qsort(all, (size_t)n, sizeof *all, ascending);
    struct range r = {0, 1};
    if (n > 0) r = (struct range){all[0], all[n - 1 - n / 100]};
    free(all);
    const double margin = r.high > r.low ? 0.04 * (r.high - r.low) : 0.5 + 0.1 * fabs(r.low);
    return (struct range){r.low - margin, r.high + margin};
}

static struct range find_x(const struct chart *c)
{
    struct range r = {INFINITY, -INFINITY};
    for (int i = 0; i < c->n_curves; i++)
        for (int64_t j = 0; j < c->curve[i].series->n; j++) {
            r.low = fmin(r.low, c->curve[i].series->x[j]);
            r.high = fmax(r.high, c->curve[i].series->x[j]);
        }
    if (r.high == r.low) r.high++;
    return r;
}

/* 1, 2 or 5 times a power of ten, about a sixth of the range. */
static double tick_of(const struct range *r)
{
    const double raw = (r->high - r->low) / 6, power = pow(10, floor(log10(raw)));
    const double lead = raw / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

static void print_tick(FILE *out, const struct axes *a, double y)
{
    const double at = y_of(a, y), value = a->log_y ? pow(10, y) : y;
    fprintf(out,
            "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"axis\" x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%.4g</text>\n",
            LEFT, at, WIDTH - RIGHT, LEFT - 6, at + 4, fabs(value) < 1e-12 ? 0 : value);
}

/* 1, 2, 5, 10, ...; of many decades 1, 10, 100, ... */
static void print_log_ticks(FILE *out, const struct axes *a)
{
    static const double within[] = {1, 2, 5};
    const int n = a->y.high - a->y.low > 3 ? 1 : 3;
    for (double decade = floor(a->y.low); decade <= a->y.high; decade++)
        for (int i = 0; i < n; i++) {
            const double y = decade + log10(within[i]);
            if (y >= a->y.low && y <= a->y.high) print_tick(out, a, y);
        }
}

static void print_axes(FILE *out, const struct chart *c, const struct axes *a)
{
    const double tick_x = tick_of(&a->x), tick_y = tick_of(&a->y);
    fprintf(out, "<text class=\"title\" x=\"%d\" y=\"18\">", LEFT);
    chart_print_text(out, c->title);
    fprintf(out, "</text><text class=\"axis\" x=\"4\" y=\"18\">%s</text>\n", c->unit);
    if (a->log_y) print_log_ticks(out, a);
    for (double y = ceil(a->y.low / tick_y) * tick_y; !a->log_y && y <= a->y.high; y += tick_y)
        print_tick(out, a, y);
    for (double x = ceil(a->x.low / tick_x) * tick_x; x <= a->x.high; x += tick_x)
        fprintf(out,
                "<text class=\"axis\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.10g</text>\n",
                x_of(a, x), HEIGHT - 10, x);
}

static void print_legend(FILE *out, const struct chart *c)
{
    int x = WIDTH - RIGHT;
    for (int i = c->n_curves - 1; i >= 0; i--) {
        if (!c->curve[i].label) continue;
        fprintf(out, "<text class=\"legend c%d\" x=\"%d\" y=\"18\" text-anchor=\"end\">",
                c->curve[i].colour, x);
        chart_print_text(out, c->curve[i].label);
        fprintf(out, "</text>\n");
        x -= 14 + 7 * (int)strlen(c->curve[i].label);
    }
}

/* Points that are drawn as one. */
struct bucket {
    double x, mean, low, high;
};

static int make_buckets(struct bucket *b, const struct series *s, const struct axes *a)
{
    const int64_t each = (s->n + POINTS - 1) / POINTS;
    int n = 0;
    for (int64_t at = 0; at < s->n; at += each) {
        struct bucket one = {.low = INFINITY, .high = -INFINITY};
        int64_t count = 0;
        for (int64_t i = at; i < at + each && i < s->n; i++) {
            if (!is_drawn(a, s->y[i])) continue;
            const double y = to_axis(a, s->y[i]);
            one.x += s->x[i];
            one.mean += y;
            one.low = fmin(one.low, y);
            one.high = fmax(one.high, y);
            count++;
        }
        if (count == 0) continue;
        one.x /= (double)count;
        one.mean /= (double)count;
        b[n++] = one;
    }
    return n;
}

static void print_band(FILE *out, const struct bucket *b, int n, int colour, const struct axes *a)
{
    fprintf(out, "<path class=\"band c%d\" d=\"M", colour);
    for (int i = 0; i < n; i++) fprintf(out, "%.1f %.1f ", x_of(a, b[i].x), y_of(a, b[i].high));
    for (int i = n - 1; i >= 0; i--) fprintf(out, "%.1f %.1f ", x_of(a, b[i].x), y_of(a, b[i].low));
    fprintf(out, "Z\"/>\n");
}

static void print_curve(FILE *out, const struct curve *c, const struct axes *a)
{
    static struct bucket b[POINTS];
    const int n = make_buckets(b, c->series, a);
    if (n == 0) return;
    if (c->series->n > POINTS) print_band(out, b, n, c->colour, a);
    fprintf(out, "<path class=\"line c%d%s\" d=\"M", c->colour, c->dashed ? " dashed" : "");
    for (int i = 0; i < n; i++) fprintf(out, "%.1f %.1f ", x_of(a, b[i].x), y_of(a, b[i].mean));
    fprintf(out, "\"/>\n");
    for (int i = 0; c->dots && i < n; i++)
        fprintf(out,
                "<circle class=\"dot c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>step %.0f: "
                "%.6g</title></circle>\n",
                c->colour, x_of(a, b[i].x), y_of(a, b[i].mean), b[i].x,
                a->log_y ? pow(10, b[i].mean) : b[i].mean);
}

static void print_marks(FILE *out, const struct chart *c, const struct axes *a)
{
    for (int i = 0; i < c->n_marks; i++)
        fprintf(out,
                "<path class=\"mark c%d\" d=\"M%.1f %dV%d\"><title>%s, step %.0f</title></path>\n",
                c->mark[i].colour, x_of(a, fmin(fmax(c->mark[i].x, a->x.low), a->x.high)), TOP,
                HEIGHT - BOTTOM, c->mark[i].what, c->mark[i].x);
}

static bool has_points(const struct chart *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n_curves; i++)
        for (int64_t j = 0; j < c->curve[i].series->n; j++) n += isfinite(c->curve[i].series->y[j]);
    return n > 1;
}

void chart_print(FILE *out, const struct chart *c)
{
    struct axes a = {.log_y = c->log_y};
    if (!has_points(c)) return;
    a.x = find_x(c);
    a.y = find_y(c, &a);
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, HEIGHT);
    print_axes(out, c, &a);
    print_marks(out, c, &a);
    for (int i = 0; i < c->n_curves; i++) print_curve(out, &c->curve[i], &a);
    print_legend(out, c);
    fprintf(out, "</svg>\n");
}

/* The mean of load over the steps of a column; NaN: there are none. */
static double mean_of_column(const struct series *s, int column, int n_columns)
{
    const int64_t from = s->n * column / n_columns, to = s->n * (column + 1) / n_columns;
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = from; i < to; i++) {
        if (!isfinite(s->y[i])) continue;
        sum += s->y[i];
        count++;
    }
    return count > 0 ? sum / (double)count : NAN;
}

void chart_print_map(FILE *out, const char *title, const struct series *load, int n_layers,
                     double most)
{
    if (n_layers == 0 || load[0].n == 0) return;
    const int columns = load[0].n < MAP_COLUMNS ? (int)load[0].n : MAP_COLUMNS;
    const double width = (double)(WIDTH - LEFT - RIGHT) / columns;
    const int bottom = TOP + n_layers * MAP_ROW;
    fprintf(out,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n<text class=\"title\" x=\"%d\" y=\"18\">",
            WIDTH, bottom + BOTTOM, LEFT);
    chart_print_text(out, title);
    fprintf(out, "</text>\n");
    for (int l = 0; l < n_layers; l++) {
        fprintf(out, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">MoE %d</text>\n",
                LEFT - 6, TOP + l * MAP_ROW + MAP_ROW - 3, l);
        for (int k = 0; k < columns; k++) {
            const double x = mean_of_column(&load[l], k, columns);
            if (isnan(x)) continue;
            const double part = most > 1 ? fmin(fmax((x - 1) / (most - 1), 0), 1) : 0;
            fprintf(out,
                    "<rect class=\"s%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>"
                    "MoE layer %d, step %.0f: %.2f</title></rect>\n",
                    (int)lround(part * (N_SHADES - 1)), LEFT + k * width, TOP + l * MAP_ROW,
                    width + 0.3, MAP_ROW - 1, l, load[l].x[load[l].n * k / columns], x);
        }
    }
    fprintf(
        out,
        "<text class=\"axis\" x=\"%d\" y=\"%d\">step %.0f</text><text class=\"axis\" "
        "x=\"%d\" y=\"%d\" text-anchor=\"end\">step %.0f; light: 1.0, dark: %.1f</text>\n</svg>\n",
        LEFT, bottom + 18, load[0].x[0], WIDTH - RIGHT, bottom + 18, load[0].x[load[0].n - 1],
        most);
}
