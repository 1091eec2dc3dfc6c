/* cmd_report.c - `dsv3 report`: the numbers of one run or several as one HTML page of pictures. */
#include "base/err.h"
#include "base/path.h"
#include "base/text.h"
#include "report/chart.h"
#include "train/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNS = 8 };

static const char help[] =
    "usage: dsv3 report RUN [RUN2 ...] [--out FILE]\n"
    "\n"
    "Makes one HTML file, without anything else to load, of the metrics.jsonl of runs: losses,\n"
    "gradient norm, learning rate, throughput, expert load by layer and step, selection biases,\n"
    "with restarts, skipped steps, rollbacks and waits for checkpoints marked. Several runs are "
    "drawn\n"
    "into the same pictures.\n"
    "\n"
    "Options:\n"
    "  --out FILE           where to: RUN/report.html\n"
    "  -h, --help           this page\n"
    "\n"
    "Examples:\n"
    "  dsv3 report runs/demo\n"
    "  dsv3 report runs/a runs/b --out compare.html\n";

static const char style[] =
    "body{font:15px system-ui,sans-serif;margin:24px auto;max-width:1340px;padding:0 16px;"
    "color:#222;background:#fff}"
    "h1{font-size:22px}table{border-collapse:collapse;margin:12px 0 24px}"
    "td,th{padding:4px 14px 4px 0;text-align:left;border-bottom:1px solid #ddd;"
    "font-variant-numeric:tabular-nums}"
    ".all{display:grid;grid-template-columns:repeat(auto-fit,minmax(480px,1fr));gap:20px}"
    "svg{width:100%;height:auto;background:#fafafa;border:1px solid #e4e4e4;border-radius:6px}"
    "text{font-size:11px;fill:#555}.title{font-size:13px;font-weight:600;fill:#222}"
    ".legend{font-weight:600;stroke:none}"
    ".grid{stroke:#e4e4e4;fill:none}.line{fill:none;stroke-width:1.6}.dashed{stroke-dasharray:5 4}"
    ".band{stroke:none;opacity:.18}.mark{fill:none;stroke-width:1.2;stroke-dasharray:2 3}"
    ".line,.mark{stroke:var(--c)}.band,.dot,.legend{fill:var(--c)}"
    ".c0{--c:#1f6fb4}.c1{--c:#d9541e}.c2{--c:#2a9d58}.c3{--c:#8a4fbf}.c4{--c:#b8860b}"
    ".c5{--c:#c2326f}.c6{--c:#37868f}.c7{--c:#777}"
    ".s0{fill:#f2f6fa}.s1{fill:#dfe9f3}.s2{fill:#c9daeb}.s3{fill:#aecae1}.s4{fill:#90b6d6}"
    ".s5{fill:#6f9fc9}.s6{fill:#5087b9}.s7{fill:#356fa6}.s8{fill:#20578e}.s9{fill:#0d3d6f}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}td,th{border-color:#333}"
    "svg{background:#1d2025;border-color:#333}text{fill:#aaa}.title{fill:#eee}.grid{stroke:#333}}";

/* --- the table above the pictures --- */

static double last_finite(const struct series *s)
{
    for (int64_t i = s->n - 1; i >= 0; i--)
        if (isfinite(s->y[i])) return s->y[i];
    return NAN;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const struct series *s)
{
    double *y = malloc((size_t)(s->n + 1) * sizeof *y);
    CHECK(y, "no memory for %lld points", (long long)s->n);
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (isfinite(s->y[i])) y[n++] = s->y[i];
    qsort(y, (size_t)n, sizeof *y, ascending);
    const double middle = n > 0 ? y[n / 2] : NAN;
    free(y);
    return middle;
}

static void print_loss(FILE *out, double x)
{
    if (isfinite(x))
        fprintf(out, "<td>%.4f</td>", x);
    else
        fputs("<td>none</td>", out);
}

static void print_count(FILE *out, double x)
{
    char text[TEXT_NUMBER];
    fprintf(out, "<td>%s</td>", isfinite(x) ? text_grouped(text, llround(x)) : "none");
}

static void print_table(FILE *out, const struct run_log *log, int n)
{
    fputs("<table><tr><th>run</th><th>mesh</th><th>version</th><th>parameters</th><th>active a "
          "token</th><th>steps</th><th>tokens</th><th>loss</th><th>held-out</th><th>tokens/s, "
          "median</th><th>restarts</th><th>rollbacks</th><th>skipped</th></tr>\n",
          out);
    for (int i = 0; i < n; i++) {
        const struct run_log *l = &log[i];
        fprintf(out, "<tr><th class=\"c%d\" style=\"color:var(--c)\">", i);
        chart_print_text(out, l->name);
        fputs("</th><td>", out);
        chart_print_text(out, l->mesh);
        fputs("</td><td>", out);
        chart_print_text(out, l->version);
        fputs("</td>", out);
        print_count(out, l->params);
        print_count(out, l->params_active);
        print_count(out, l->loss.x[l->loss.n - 1]);
        print_count(out, l->tokens);
        print_loss(out, last_finite(&l->loss));
        print_loss(out, last_finite(&l->heldout));
        print_count(out, median(&l->tok_s));
        print_count(out, (double)l->restart.n);
        print_count(out, (double)l->rollback.n);
        print_count(out, (double)l->skipped.n);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

/* --- the pictures --- */

static int add_marks(struct mark *marks, int n, const struct series *s, const char *what,
                     int colour)
{
    for (int64_t i = 0; marks && i < s->n; i++)
        marks[n + i] = (struct mark){.x = s->x[i], .what = what, .colour = colour};
    return n + (int)s->n;
}

/* Restarts, skipped steps and rollbacks of all runs; counts when marks is NULL. */
static int all_marks(struct mark *marks, const struct run_log *log, int n_runs)
{
    int n = 0;
    for (int i = 0; i < n_runs; i++) {
        n = add_marks(marks, n, &log[i].restart, "resumed", i);
        n = add_marks(marks, n, &log[i].skipped, "step skipped", i);
        n = add_marks(marks, n, &log[i].rollback, "rolled back", i);
    }
    return n;
}

static void add_curve(struct chart *c, const struct series *s, const char *label, int colour,
                      bool dashed, bool dots)
{
    if (s->n == 0 || c->n_curves == MAX_CURVES) return;
    c->curve[c->n_curves++] = (struct curve){
        .series = s, .label = label, .colour = colour, .dashed = dashed, .dots = dots};
}

static void print_losses(FILE *out, struct chart *c, const struct run_log *log, int n)
{
    c->title = "loss (line), held-out loss (dots)";
    c->unit = "nats";
    for (int i = 0; i < n; i++) {
        add_curve(c, &log[i].loss, n > 1 ? log[i].name : NULL, i, false, false);
        add_curve(c, &log[i].heldout, NULL, i, true, true);
    }
    chart_print(out, c);
    c->n_curves = 0;
    c->title = "MTP loss";
    for (int i = 0; i < n; i++) add_curve(c, &log[i].mtp_loss, NULL, i, false, false);
    chart_print(out, c);
}

static void print_optimizer(FILE *out, struct chart *c, const struct run_log *log, int n)
{
    c->n_curves = 0;
    c->title = "gradient norm";
    c->unit = "";
    c->log_y = true;
    for (int i = 0; i < n; i++) add_curve(c, &log[i].grad_norm, NULL, i, false, false);
    chart_print(out, c);
    c->n_curves = 0;
    c->log_y = false;
    c->title = "learning rate";
    for (int i = 0; i < n; i++) add_curve(c, &log[i].lr, NULL, i, false, false);
    chart_print(out, c);
}

static void print_speed(FILE *out, struct chart *c, const struct run_log *log, int n)
{
    c->n_curves = 0;
    c->title = "throughput";
    c->unit = "tokens/s";
    for (int i = 0; i < n; i++) add_curve(c, &log[i].tok_s, NULL, i, false, false);
    chart_print(out, c);
    c->n_curves = 0;
    c->title = "steps held up by checkpoints";
    c->unit = "s";
    for (int i = 0; i < n; i++) add_curve(c, &log[i].stall, NULL, i, false, true);
    chart_print(out, c);
}

static void print_experts(FILE *out, struct chart *c, const struct run_log *log, int n)
{
    double most = 1;
    c->n_curves = 0;
    c->title = "selection biases: smallest and largest of all layers";
    c->unit = "";
    for (int i = 0; i < n; i++) {
        add_curve(c, &log[i].bias_low, NULL, i, true, false);
        add_curve(c, &log[i].bias_high, NULL, i, false, false);
    }
    chart_print(out, c);
    for (int i = 0; i < n; i++)
        for (int l = 0; l < log[i].n_layers; l++)
            most = fmax(most, 2 * median(&log[i].load[l]) - 1);
    for (int i = 0; i < n; i++) {
        char title[256];
        snprintf(title, sizeof title, "expert load, busiest / mean: %.200s", log[i].name);
        chart_print_map(out, title, log[i].load, log[i].n_layers, most);
    }
}

static void print_page(FILE *out, const struct run_log *log, int n)
{
    struct chart c = {.n_marks = all_marks(NULL, log, n)};
    struct mark *marks = malloc((size_t)(c.n_marks + 1) * sizeof *marks);
    CHECK(marks, "no memory for %d marks", c.n_marks);
    all_marks(marks, log, n);
    c.mark = marks;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>dsv3: ", out);
    for (int i = 0; i < n; i++) {
        if (i > 0) fputs(", ", out);
        chart_print_text(out, log[i].name);
    }
    fprintf(out, "</title><style>%s</style></head><body>\n<h1>Training with dsv3</h1>\n", style);
    print_table(out, log, n);
    fputs("<div class=\"all\">\n", out);
    print_losses(out, &c, log, n);
    print_optimizer(out, &c, log, n);
    print_speed(out, &c, log, n);
    print_experts(out, &c, log, n);
    fputs(
        "</div>\n<p>Dotted vertical lines: a start that resumed, a step that was skipped, a "
        "rollback; the pointer shows which. Bands: from the least to the most of the steps that a "
        "point stands for.</p>\n</body></html>\n",
        out);
    free(marks);
}

static int write_page(const char *path, const struct run_log *log, int n)
{
    FILE *out = fopen(path, "w");
    if (out) print_page(out, log, n);
    const bool bad = !out || ferror(out);
    if ((out && fclose(out) != 0) || bad) {
        fprintf(stderr, "dsv3 report: cannot write %s: %s\n", path, strerror(errno));
        return CODE_IO;
    }
    printf("%s\n", path);
    return output_end();
}

static int run_report(int argc, char **argv)
{
    static struct run_log log[MAX_RUNS];
    char path[PATH_BYTES];
    const char *out = NULL;
    int n = 0, code = CODE_DONE;
    for (int i = 0; i < argc && code == CODE_DONE; i++) {
        struct fault fault = {0};
        if (!strcmp(argv[i], "--out") && argv[i + 1]) {
            out = argv[++i];
        } else if (*argv[i] == '-' || n == MAX_RUNS) {
            fprintf(stderr, "dsv3 report: %s: %s; see dsv3 report --help\n", argv[i],
                    *argv[i] == '-' ? "unknown option, or one without its value" : "too many runs");
            code = CODE_USAGE;
        } else if (run_log_try_read(&log[n++], argv[i], &fault) != 0) {
            fprintf(stderr, "dsv3 report: %s\n", fault.why);
            code = fault.code;
        }
    }
    if (code == CODE_DONE && n == 0) {
        fputs("dsv3 report: no RUN; see dsv3 report --help\n", stderr);
        code = CODE_USAGE;
    }
    if (code == CODE_DONE)
        code = write_page(out ? out : path_print(path, "%s/report.html", log[0].name), log, n);
    for (int i = 0; i < n; i++) run_log_free(&log[i]);
    return code;
}

const struct command cmd_report = {.name = "report", .help = help, .run = run_report};
