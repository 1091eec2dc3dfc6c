/* Experts that no token chooses get gradients of exactly zero, although the memory of these held
 * NaN before: only weight decay moves them. */
// TEST ranks=1,4 timeout=60
#include "tests/run_rig.h"

#include <math.h>
#include <string.h>

enum { STEPS = 4, USED = 4 };

/* Local elements of an expert tensor that belong to unused experts: from here to the end. */
static int64_t first_unused(const struct param *p, const struct mesh *mesh)
{
    const int64_t each = p->n / p->local_dim[0];
    const int64_t before = mesh->axis[AXIS_EP].rank * p->local_dim[0];
    const int64_t used = before < USED ? USED - before : 0;
    return (used < p->local_dim[0] ? used : p->local_dim[0]) * each;
}

/* Both moments of the elements of this rank's shard: zero exactly when every gradient was. */
static void check_moments(const struct run *run, const struct param *p)
{
    const struct bucket *b = &run->params.bucket[p->bucket];
    const float *m = run->optim.m[p->bucket], *v = run->optim.v[p->bucket];
    int64_t first, count, n_zero = 0, n_unused = 0;
    if (!param_in_shard(p, b, &first, &count)) return;
    for (int64_t i = first; i < first + count; i++) {
        const int64_t at = p->offset + i - b->shard0;
        const bool unused = i >= first_unused(p, &run->mesh);
        n_unused += unused;
        n_zero += m[at] == 0 && v[at] == 0;
        EXPECT(!unused || (m[at] == 0 && v[at] == 0), "%s: element %lld has moments %g, %g",
               p->name, (long long)i, m[at], v[at]);
    }
    EXPECT(n_zero < n_unused + count / 10 + 1, "%s: %lld of %lld used moments are zero", p->name,
           (long long)(n_zero - n_unused), (long long)(count - n_unused));
}

/* One rounding a step beside the exact product: 1e-6 of the weight. */
static void check_weights(const struct run *run, const struct param *p, const float *before)
{
    const struct config_optimizer *o = &run->cfg->optimizer;
    const double decayed = pow(1.0 - o->lr * o->weight_decay, STEPS);
    const float *w = p->w;
    for (int64_t i = first_unused(p, &run->mesh); i < p->n; i++)
        EXPECT(fabs(w[i] - before[i] * decayed) <= 1e-6 * fabsf(before[i]),
               "%s: element %lld is %.9g, decay alone gives %.9g", p->name, (long long)i, w[i],
               before[i] * decayed);
}

static void check_mesh(const char *overrides)
{
    static struct run_rig rig;
    char all[512];
    snprintf(all, sizeof all,
             "train.steps=%d optimizer.schedule=constant optimizer.warmup_steps=1 "
             "optimizer.lr=0.01 optimizer.weight_decay=0.5 %s",
             STEPS, overrides);
    run_rig_init(&rig, "run", all);
    struct run *run = &rig.run;
    for (int e = 0; e < USED; e++) run_rig_set_bias(&rig, e, 1000.0f);
    float *before = malloc((size_t)run->params.bucket[GROUP_EXPERT * 2].n * sizeof *before);
    memcpy(before, run->params.bucket[GROUP_EXPERT * 2].w,
           (size_t)run->params.bucket[GROUP_EXPERT * 2].n * sizeof *before);
    for (int s = 0; s < STEPS; s++) {
        run_rig_step(&rig);
        for (int i = 0; i < run->model.n_moe * run->model.E; i++)
            EXPECT((run->expert_total[i] > 0) == (i % run->model.E < USED),
                   "expert %d of layer %d has %lld tokens", i % run->model.E, i / run->model.E,
                   (long long)run->expert_total[i]);
    }
    for (int i = 0; i < run->params.n_params; i++) {
        const struct param *p = &run->params.param[i];
        if (p->group != GROUP_EXPERT) continue;
        check_moments(run, p);
        check_weights(run, p, before + p->offset);
    }
    free(before);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    const int n_ranks = run_rig_begin(&argc, &argv);
    check_mesh("");
    if (n_ranks == 4) {
        check_mesh("topology.ep=4");
        check_mesh("topology.tp=2 topology.ep=2");
    }
    return test_end();
}
