/* A profile changes no bit of a run, leaves the first step out, and counts the work of a step as
 * the model's own formula does. */
// TEST ranks=1 timeout=30
#include "kernels/profile_record.h"
#include "run_rig.h"

#include <math.h>
#include <string.h>

enum { STEPS = 3 };

static void run(const char *name, const char *overrides, struct model_counts *counts)
{
    static struct run_rig rig;
    char all[128];
    snprintf(all, sizeof all, "train.steps=%d %s", STEPS, overrides);
    run_rig_init(&rig, name, all);
    for (int s = 0; s < STEPS; s++) run_rig_step(&rig);
    *counts = rig.run.counts;
    run_rig_free(&rig);
}

/* Backward of attention makes the scores again: the model's formula does not count that. */
static void check_flop(const struct profile_record *r, double tokens, double flop_per_token)
{
    double flop = 0;
    for (int i = 0; i < r->n_entries; i++) {
        const struct profile_entry *e = &r->entry[i];
        if (e->in > 0)
            flop += e->flop;
        else if (!strcmp(e->op, "attention_fwd"))
            flop += 3 * e->flop;
    }
    const double want = tokens * flop_per_token; /* integers below 2^53: exact but for the halves */
    EXPECT(fabs(flop - want) < 1e-12 * want, "%.0f FLOP, expected %.0f", flop, want);
}

static void check_times(const struct profile_record *r)
{
    double sum = r->sum.comm_s + r->sum.data_s;
    EXPECT(r->n_steps == STEPS - 1, "%lld steps counted", (long long)r->n_steps);
    for (int i = 0; i < r->n_entries; i++) {
        const struct profile_entry *e = &r->entry[i];
        sum += e->seconds;
        EXPECT(e->calls > 0 && e->seconds >= 0 && e->bytes + e->flop > 0, "%s, %s: no work",
               e->phase, e->op);
    }
    EXPECT(sum > 0 && sum <= r->sum.step_s, "parts take %g s of %g s", sum, r->sum.step_s);
}

static void check_print(void)
{
    char *text;
    size_t n_bytes;
    FILE *out = open_memstream(&text, &n_bytes);
    profile_print(out, &(struct profile_bounds){1e11, 1e11, 1e10});
    fclose(out);
    static const char *const wanted[] = {"attention ", "experts ", "(communication)", "adamw ",
                                         "linear_fwd       64 ->    32 f32"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        EXPECT(strstr(text, wanted[i]), "no row \"%s\" in\n%s", wanted[i], text);
    free(text);
}

int main(int argc, char **argv)
{
    struct model_counts counts;
    MPI_Init(&argc, &argv);
    run_rig_data();
    run("plain", "", &counts);
    run("profiled", "debug.profile=true", &counts);
    run_rig_compare("profiled", "plain", "0");
    const double tokens = 8.0 * 32 * (STEPS - 1); /* tests/tiny.yaml */
    check_flop(profile_get_record(), tokens, counts.flop_exact);
    check_times(profile_get_record());
    check_print();
    return test_end();
}
