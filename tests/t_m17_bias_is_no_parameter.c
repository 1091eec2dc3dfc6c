/* The selection bias is no parameter: no moments, no decay, no part of the norm, only its own
 * steps; and where experts are unused on some ranks no reduction waits for their gradients. */
// TEST ranks=4 timeout=60
#include "tests/run_rig.h"

#include <string.h>

enum { STEPS = 20, USED = 4, MAX_BIASES = 32 };

/* What the optimizer knows: weights of the table, and the selection biases are not among them. */
static void check_table(const struct run *run)
{
    const struct param_table *t = &run->params;
    const float *bias = run->model.bias;
    for (int i = 0; i < t->n_params; i++) {
        const struct param *p = &t->param[i];
        const size_t n = strlen(p->name), n_end = strlen(".weight");
        EXPECT(n > n_end && !strcmp(p->name + n - n_end, ".weight") && !strstr(p->name, "bias"),
               "%s is trained", p->name);
        const char *w = p->w, *end = w + (size_t)p->n * dtype_bytes(p->dtype);
        EXPECT((const char *)bias < w || (const char *)bias >= end, "the bias lies in %s", p->name);
    }
}

/* A step of train.router_bias_speed up or down, whatever the learning rate and the decay. */
static void check_bias(const struct run *run, const float *before)
{
    const struct model *m = &run->model;
    const float speed = (float)run->cfg->train.router_bias_speed;
    for (int i = 0; i < m->n_moe * m->E; i++) {
        const int64_t *count = run->expert_total + i / m->E * m->E;
        int64_t sum = 0;
        for (int e = 0; e < m->E; e++) sum += count[e];
        const int64_t above = sum - count[i % m->E] * m->E; /* E times: mean less own count */
        const float want = before[i] + (above > 0 ? speed : above < 0 ? -speed : 0);
        EXPECT(m->bias[i] == want, "bias %d is %.9g, expected %.9g", i, m->bias[i], want);
    }
}

static void step(struct run_rig *rig)
{
    float before[MAX_BIASES];
    const struct model *m = &rig->run.model;
    memcpy(before, m->bias, (size_t)(m->n_moe * m->E) * sizeof *before);
    run_rig_step(rig);
    check_bias(&rig->run, before);
}

/* The last rank's tokens use one half of the experts, all others the other half: a reduction that
 * waited for a gradient that is not made would hang. */
static void check_unused_on_some_ranks(const char *name, const char *overrides)
{
    static struct run_rig rig;
    char all[512];
    snprintf(all, sizeof all, "train.steps=%d %s", STEPS, overrides);
    run_rig_init(&rig, name, all);
    check_table(&rig.run);
    const bool last = rig.run.mesh.rank == rig.run.mesh.size - 1;
    for (int e = 0; e < rig.run.model.E; e++)
        run_rig_set_bias(&rig, e, (e < USED) == last ? 0.0f : 1000.0f);
    while (rig.run.progress.step < rig.cfg.train.steps) {
        step(&rig);
        for (int i = 0; i < rig.run.model.n_moe * rig.run.model.E; i++)
            EXPECT(rig.run.expert_total[i] > 0, "expert %d has no token", i);
    }
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    run_rig_begin(&argc, &argv);
    check_unused_on_some_ranks("ep1", "");
    check_unused_on_some_ranks("ep4", "topology.ep=4");
    run_rig_compare("ep1", "ep4", "1e-5"); /* F32 sums in another order */
    return test_end();
}
