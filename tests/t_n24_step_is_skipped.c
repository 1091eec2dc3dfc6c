/* A gradient that is not finite on one rank: the step changes no weight, master, moment or bias on
 * any rank, one line of that rank names the tensor, the count is reported, and the data go on. */
// TEST ranks=4 timeout=60
#include "tests/run_rig.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { BAD_STEP = 5, BAD_RANK = 1 };
#define TENSOR "model.layers.1.mlp.experts.down_proj.weight"
#define SETTINGS                                                                                   \
    "topology.tp=2 topology.ep=2 train.steps=7 optimizer.schedule=constant "                       \
    "train.max_nonfinite_steps=1 train.router_bias_speed=0.01 debug.bad_grad_step=5 "              \
    "debug.bad_grad_rank=1 debug.bad_grad_param=" TENSOR

/* Of everything that a step may change on this rank, but for the data position. */
static uint64_t hash_state(const struct run *run)
{
    const size_t moment = dtype_bytes(run->cfg->optimizer.moments_dtype);
    uint64_t hash = XXH64(run->weights.base, run->weights.used, 0);
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &run->params.bucket[i];
        const size_t n = (size_t)b->n_shard;
        if (b->n == 0) continue;
        hash = XXH64(b->master, n * sizeof(float), hash);
        hash = XXH64(run->optim.m[i], n * moment, hash);
        hash = XXH64(run->optim.v[i], n * moment, hash);
    }
    return XXH64(run->model.bias, (size_t)(run->model.n_moe * run->model.E) * sizeof(float), hash);
}

/* One step; said: what this rank wrote to its standard error. */
static void step(struct run_rig *rig, char said[2048])
{
    FILE *file = tmpfile();
    const int screen = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    run_rig_step(rig);
    dup2(screen, STDERR_FILENO);
    close(screen);
    rewind(file);
    said[fread(said, 1, 2047, file)] = '\0';
    fclose(file);
}

static void check_said(const struct run *run, const char *said, const char *words)
{
    if (run->mesh.rank != BAD_RANK) {
        EXPECT(!*said, "not the rank at fault, said: %s", said);
        return;
    }
    const char *end = strchr(said, '\n');
    EXPECT(end && !end[1] && !strncmp(said, "warning [rank 1/4 ", 18) && strstr(said, "step 5: ") &&
               strstr(said, TENSOR) && strstr(said, words),
           "'%s' is not in the one line: %s", words, said);
}

/* What the report of the last "bad" run says of steps 1 .. 7. Rank 0 looks. */
static void check_reports(const struct run *run)
{
    char command[1024];
    snprintf(command, sizeof command,
             "perl -MJSON::PP -ne '$r = decode_json($_); next unless $r->{step}; "
             "$all .= qq($r->{skipped} ); "
             "END { exit($all eq q(0 0 0 0 1 1 2 ) ? 0 : 1) }' %s/bad/metrics.jsonl",
             test_tmpdir());
    if (run->mesh.rank == 0) EXPECT(system(command) == 0, "the report does not count the steps");
}

/* The bad step is skipped, and so is step 7: two that are not in a row. */
static void check_skipped(const char *value, const char *overrides, const char *words)
{
    static struct run_rig rig;
    char all[512], said[2048];
    snprintf(all, sizeof all, SETTINGS " debug.bad_grad_value=%s %s", value, overrides);
    run_rig_init(&rig, "bad", all);
    const struct run *run = &rig.run;
    for (int s = 1; s < BAD_STEP; s++) run_rig_step(&rig);
    const uint64_t before = hash_state(run);
    const int64_t samples = run->progress.samples;
    step(&rig, said);
    EXPECT(hash_state(run) == before, "%s: the skipped step has changed something", value);
    EXPECT(run->progress.skipped == 1 && run->progress.samples == samples + 8,
           "%s: %lld skipped, sample %lld", value, (long long)run->progress.skipped,
           (long long)run->progress.samples);
    check_said(run, said, words);
    run_rig_step(&rig);
    EXPECT(hash_state(run) != before, "%s: the step after it changes nothing", value);
    rig.cfg.debug.bad_grad_step = 7;
    run_rig_step(&rig);
    EXPECT(run->progress.skipped == 2, "%s: %lld skipped", value, (long long)run->progress.skipped);
    check_reports(run);
    run_rig_free(&rig);
}

/* Clipping makes 1e38 an ordinary step: nothing is skipped, and everything stays finite. */
static void check_clipped(void)
{
    static struct run_rig rig;
    run_rig_init(&rig, "clipped", SETTINGS " debug.bad_grad_value=huge");
    const struct run *run = &rig.run;
    for (int s = 1; s <= 7; s++) run_rig_step(&rig);
    EXPECT(run->progress.skipped == 0, "%lld skipped", (long long)run->progress.skipped);
    for (int i = 0; i < run->params.n_params; i++) {
        const struct param *p = &run->params.param[i];
        for (int64_t j = 0; j < p->n; j++)
            EXPECT(isfinite(((float *)p->w)[j]), "%s[%lld] is not finite", p->name, (long long)j);
    }
    run_rig_free(&rig);
}

/* The first update after a skipped first step is Adam's first: it moves a weight by the learning
 * rate, whatever the gradient, and not by the 0.74 of it that a second one would. */
static void check_first_update(void)
{
    static struct run_rig rig;
    enum { N = 64 };
    float before[N];
    run_rig_init(&rig, "first",
                 "train.steps=2 optimizer.warmup_steps=0 optimizer.schedule=constant "
                 "optimizer.lr=1e-3 optimizer.weight_decay=0 debug.bad_grad_step=1 "
                 "debug.bad_grad_param=model.norm.weight");
    const float *w = param_find(&rig.run.params, "model.norm.weight")->w;
    run_rig_step(&rig);
    memcpy(before, w, sizeof before);
    run_rig_step(&rig);
    for (int i = 0; i < N; i++) /* half an ulp of 1 is 6e-8 */
        EXPECT(fabs(fabs((double)w[i] - before[i]) - 1e-3) < 1e-5, "moved by %g",
               (double)w[i] - before[i]);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    run_rig_begin(&argc, &argv);
    check_skipped("nan", "", "is not finite; step skipped");
    check_skipped("inf", "train.compute_dtype=bf16 optimizer.moments_dtype=bf16",
                  "is not finite; step skipped");
    check_skipped("huge", "optimizer.clip=0", "is too large");
    check_clipped();
    check_first_update();
    return test_end();
}
