/* Token losses that are not finite on one rank are counted, in the report and on the console, with
 * the rank that has them; the mean is then no number, and no weight has changed. */
// TEST ranks=2 timeout=60
#include "run_rig.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { BAD_STEP = 2, BAD_RANK = 1, BAD_IDS = 40, STEPS = 3 };

/* Some rows of one rank's embedding: some of its tokens lose their loss, and those that see them.
 */
static void set_rows(struct run *run, float *kept, bool bad)
{
    const struct param *p = param_find(&run->params, "model.embed_tokens.weight");
    float *w = p->w;
    const size_t n = (size_t)BAD_IDS * (size_t)p->dim[1];
    if (run->mesh.rank != BAD_RANK) return;
    if (!bad) {
        memcpy(w, kept, n * sizeof *w);
        return;
    }
    memcpy(kept, w, n * sizeof *w);
    for (size_t i = 0; i < n; i++) w[i] = NAN;
}

static json_t *report_of(int step)
{
    char path[700], line[65536];
    json_t *found = NULL;
    snprintf(path, sizeof path, "%s/run/metrics.jsonl", test_tmpdir());
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    while (in && !found && fgets(line, sizeof line, in)) {
        json_t *o = json_loads(line, 0, NULL);
        if (json_integer_value(json_object_get(o, "step")) == step)
            found = o;
        else
            json_decref(o);
    }
    if (in) fclose(in);
    EXPECT(found, "no step %d in %s", step, path);
    return found;
}

static int count_null(const json_t *list)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) n += json_is_null(json_array_get(list, i));
    return n;
}

/* Losses that are null in the dump of a rank, and all of them. */
static int count_dumped(int rank, int *n_all)
{
    char path[700], line[65536];
    int n = 0;
    snprintf(path, sizeof path, "%s/run/dump-step-%d/rank-%05d.jsonl", test_tmpdir(), BAD_STEP,
             rank);
    FILE *in = fopen(path, "r");
    EXPECT(in, "no %s", path);
    *n_all = 0;
    while (in && fgets(line, sizeof line, in)) {
        json_t *o = json_loads(line, 0, NULL);
        const json_t *main_loss = json_object_get(o, "loss");
        const json_t *mtp_loss = json_array_get(json_object_get(o, "mtp_loss"), 0);
        n += count_null(main_loss) + count_null(mtp_loss);
        *n_all += (int)(json_array_size(main_loss) + json_array_size(mtp_loss));
        json_decref(o);
    }
    if (in) fclose(in);
    return n;
}

static void check_reports(void)
{
    int n_all;
    const int n_bad = count_dumped(BAD_RANK, &n_all);
    EXPECT(n_bad > 0 && n_bad < n_all, "%d of %d losses of the bad rank are bad", n_bad, n_all);
    EXPECT(count_dumped(1 - BAD_RANK, &n_all) == 0, "the other rank has bad losses");
    for (int step = 1; step <= STEPS; step++) {
        json_t *o = report_of(step);
        const int n = (int)json_integer_value(json_object_get(o, "bad_losses"));
        const json_t *rank = json_object_get(o, "bad_rank"), *loss = json_object_get(o, "loss");
        EXPECT(n == (step == BAD_STEP ? n_bad : 0), "step %d: %d bad losses, %d were dumped", step,
               n, n_bad);
        EXPECT(step == BAD_STEP ? json_is_null(loss) && json_integer_value(rank) == BAD_RANK
                                : json_number_value(loss) > 0 && !rank,
               "step %d: %s", step, json_dumps(o, 0));
        json_decref(o);
    }
}

int main(int argc, char **argv)
{
    static struct run_rig rig;
    static float kept[BAD_IDS * 64];
    uint64_t before, after;
    double l2;
    run_rig_begin(&argc, &argv);
    char overrides[64];
    snprintf(overrides, sizeof overrides, "debug.dump_step=%d", BAD_STEP);
    run_rig_init(&rig, "run", overrides);
    for (int step = 1; step <= STEPS; step++) {
        optim_param_hash(&rig.run.optim, &before, &l2);
        if (step == BAD_STEP) set_rows(&rig.run, kept, true);
        run_rig_step(&rig);
        if (step == BAD_STEP) set_rows(&rig.run, kept, false);
        optim_param_hash(&rig.run.optim, &after, &l2);
        EXPECT((before == after) == (step == BAD_STEP),
               "step %d: the weights' hash was %016llx, is "
               "%016llx",
               step, (unsigned long long)before, (unsigned long long)after);
    }
    if (rig.run.mesh.rank == 0) check_reports();
    run_rig_free(&rig);
    return test_end();
}
