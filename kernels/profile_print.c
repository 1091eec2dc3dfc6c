/*
 * profile_print.c - the tables of profile.h. A row's bound is the least time the machine needs for
 * its calls, shape by shape: FLOP at the measured peak or bytes at the measured bandwidth,
 * whichever takes longer. How to read them: docs/performance.md.
 */
#include "kernels/profile_record.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL = 48 };
struct row {
    char label[LABEL];
    int64_t calls;
    double seconds, flop, bytes, bound_s, flop_s; /* flop_s: all FLOP at the peak */
};

struct table {
    struct row row[PROFILE_ENTRIES];
    int n_rows;
};

/* The steps that were counted, and what a second and a byte are measured by. */
struct scale {
    FILE *out;
    const struct profile_bounds *bounds;
    double n_steps, step_s; /* step_s: mean */
};

static void label_phase(char label[LABEL], const struct profile_entry *e)
{
    snprintf(label, LABEL, "%s", e->phase);
}

static void label_op(char label[LABEL], const struct profile_entry *e)
{
    snprintf(label, LABEL, "%s", e->op);
}

static void label_shape(char label[LABEL], const struct profile_entry *e)
{
    if (!e->in) return;
    snprintf(label, LABEL, "%-13s %5d -> %5d %s", e->op, e->in, e->out, dtype_name(e->dt));
}

static void add_entry(struct row *row, const struct profile_entry *e,
                      const struct profile_bounds *bounds)
{
    const double peak = e->dt == DTYPE_BF16 ? bounds->flops_bf16 : bounds->flops_f32;
    const double flop_s = e->flop / peak, bytes_s = e->bytes / bounds->bandwidth;
    row->calls += e->calls;
    row->seconds += e->seconds;
    row->flop += e->flop;
    row->bytes += e->bytes;
    row->flop_s += flop_s;
    row->bound_s += flop_s > bytes_s ? flop_s : bytes_s;
}

/* Entries of one label are one row; those without a label are left out. */
static void fill_table(struct table *t, const struct profile_bounds *bounds,
                       void (*label_of)(char label[LABEL], const struct profile_entry *e))
{
    const struct profile_record *record = profile_get_record();
    t->n_rows = 0;
    for (int i = 0; i < record->n_entries; i++) {
        char label[LABEL] = "";
        int r = 0;
        label_of(label, &record->entry[i]);
        if (!*label) continue;
        while (r < t->n_rows && strcmp(t->row[r].label, label) != 0) r++;
        if (r == t->n_rows) {
            t->row[t->n_rows++] = (struct row){0};
            memcpy(t->row[r].label, label, LABEL);
        }
        add_entry(&t->row[r], &record->entry[i], bounds);
    }
}

static int compare(const void *a, const void *b)
{
    const double x = ((const struct row *)a)->seconds, y = ((const struct row *)b)->seconds;
    return (x < y) - (x > y);
}

/* share of the step, ms a step */
static void put_time(const struct scale *sc, const char *label, double seconds)
{
    const double each = seconds / sc->n_steps;
    fprintf(sc->out, "  %-36s %6.2f%% %10.3f", label, 100.0 * each / sc->step_s, each * 1e3);
}

static void print_phases(const struct scale *sc, struct table *t)
{
    const struct profile_step *sum = &profile_get_record()->sum;
    double other = sum->step_s - sum->comm_s - sum->data_s;
    fill_table(t, sc->bounds, label_phase);
    fprintf(sc->out, "  %-36s %7s %10s %10s %8s\n", "phase", "share", "ms/step", "bound ms",
            "reached");
    for (int r = 0; r < t->n_rows; r++) {
        const struct row *row = &t->row[r];
        put_time(sc, row->label, row->seconds);
        fprintf(sc->out, " %10.3f %7.1f%%\n", row->bound_s / sc->n_steps * 1e3,
                100.0 * row->bound_s / row->seconds);
        other -= row->seconds;
    }
    put_time(sc, "(communication)", sum->comm_s);
    fputc('\n', sc->out);
    put_time(sc, "(waiting for data)", sum->data_s);
    fputc('\n', sc->out);
    put_time(sc, "(everything else)", other);
    fputs("\n\n", sc->out);
}

static void print_rows(const struct scale *sc, struct table *t, const char *title, double least)
{
    qsort(t->row, (size_t)t->n_rows, sizeof *t->row, compare);
    fprintf(sc->out, "  %-36s %7s %10s %8s %9s %6s %8s %6s %8s\n", title, "share", "ms/step",
            "calls", "GFLOP/s", "peak", "GB/s", "mem", "reached");
    for (int r = 0; r < t->n_rows; r++) {
        const struct row *row = &t->row[r];
        const double rate = row->bytes / row->seconds;
        if (row->seconds / sc->n_steps < least * sc->step_s) continue;
        put_time(sc, row->label, row->seconds);
        fprintf(sc->out, " %8.1f", (double)row->calls / sc->n_steps);
        if (row->flop > 0)
            fprintf(sc->out, " %9.1f %5.1f%%", row->flop / row->seconds * 1e-9,
                    100.0 * row->flop_s / row->seconds);
        else
            fprintf(sc->out, " %9s %6s", "-", "-");
        fprintf(sc->out, " %8.2f %5.1f%% %7.1f%%\n", rate * 1e-9,
                100.0 * rate / sc->bounds->bandwidth, 100.0 * row->bound_s / row->seconds);
    }
    fputc('\n', sc->out);
}

void profile_print(FILE *out, const struct profile_bounds *bounds)
{
    static struct table t;
    const struct profile_record *record = profile_get_record();
    if (record->n_steps == 0) return;
    const double n_steps = (double)record->n_steps;
    const struct scale sc = {out, bounds, n_steps, record->sum.step_s / n_steps};
    fprintf(out,
            "profile of rank 0: %lld steps of %.1f ms; peak %.1f GFLOP/s f32, %.1f bf16; "
            "memory %.1f GB/s\n",
            (long long)record->n_steps, sc.step_s * 1e3, bounds->flops_f32 * 1e-9,
            bounds->flops_bf16 * 1e-9, bounds->bandwidth * 1e-9);
    print_phases(&sc, &t);
    fill_table(&t, bounds, label_op);
    print_rows(&sc, &t, "operation", 0.0005);
    fill_table(&t, bounds, label_shape);
    print_rows(&sc, &t, "product, in -> out", 0.005);
    fflush(out);
}
