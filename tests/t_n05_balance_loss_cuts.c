/* The balance loss of a batch does not depend on how it is cut: with router weights of zero every
 * score ties, so that it is alpha itself, and the router moves by the same amount for one
 * micro-batch of eight sequences as for eight of one, and over dp and tp. */
// TEST ranks=1,4 timeout=60
#include "tests/run_rig.h"
#include "tests/window_runs.h"

#include <math.h>
#include <string.h>

/* eps = 1 makes the step proportional to the gradient, which alpha makes mostly that of the balance
 * loss. */
static const char settings[] =
    "train.steps=1 train.balance_loss_alpha=0.5 train.mtp_loss_weight=0 optimizer.eps=1 "
    "optimizer.lr=0.1 optimizer.schedule=constant optimizer.warmup_steps=0 "
    "optimizer.weight_decay=0 optimizer.clip=0";

enum { N_LAYERS = 3 }; /* with experts, without the MTP module's */

static struct param *router(struct run *run, int layer)
{
    char name[80];
    snprintf(name, sizeof name, "model.layers.%d.mlp.gate.weight", 1 + layer);
    return param_find(&run->params, name);
}

/* Trains one step; moved [N_LAYERS]: where the routers are afterwards, allocated. */
static void train(const char *overrides, float *moved[N_LAYERS])
{
    static struct run_rig rig;
    char all[512];
    snprintf(all, sizeof all, "%s %s", settings, overrides);
    run_rig_init(&rig, "run", all);
    for (int i = 0; i < rig.run.params.n_params; i++) {
        struct param *p = &rig.run.params.param[i];
        if (p->part == PART_ROUTER) memset(p->w, 0, (size_t)p->n * sizeof(float));
    }
    run_rig_step(&rig);
    for (int l = 0; l < N_LAYERS; l++) {
        const struct param *p = router(&rig.run, l);
        moved[l] = memcpy(malloc((size_t)p->n * sizeof(float)), p->w, (size_t)p->n * sizeof(float));
    }
    if (rig.run.mesh.rank == 0) {
        json_t *step = window_step("run", 1);
        /* Powers of two: every sum is exact. */
        EXPECT(window_number(step, "balance_loss") == 0.5, "%s: balance loss %.17g of tied scores",
               overrides, window_number(step, "balance_loss"));
        json_decref(step);
    }
    run_rig_free(&rig);
}

/* 1e-5 of the largest: F32 sums in another order. */
static void compare(const char *cut, float *const got[N_LAYERS], float *const want[N_LAYERS],
                    int64_t n)
{
    for (int l = 0; l < N_LAYERS; l++) {
        double most = 0;
        for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)want[l][i]));
        EXPECT(most > 1e-5, "%s: router %d moves by at most %g", cut, l, most);
        for (int64_t i = 0; i < n; i++)
            EXPECT(fabs((double)got[l][i] - want[l][i]) <= 1e-5 * most,
                   "%s: router %d moves by %.9g, with the whole batch at once by %.9g", cut, l,
                   got[l][i], want[l][i]);
    }
}

int main(int argc, char **argv)
{
    static const char *const one[] = {"train.micro_batch=8", "train.micro_batch=4",
                                      "train.micro_batch=1", NULL};
    static const char *const four[] = {"train.micro_batch=2", "train.micro_batch=1",
                                       "topology.tp=2 topology.ep=4 train.micro_batch=4",
                                       "topology.tp=4 topology.ep=2 train.micro_batch=2", NULL};
    float *want[N_LAYERS], *got[N_LAYERS];
    const int size = run_rig_begin(&argc, &argv);
    const char *const *cut = size == 1 ? one : four;
    train(cut[0], want);
    for (int i = 1; cut[i]; i++) {
        train(cut[i], got);
        compare(cut[i], got, want, 8 * 64);
        for (int l = 0; l < N_LAYERS; l++) free(got[l]);
    }
    for (int l = 0; l < N_LAYERS; l++) free(want[l]);
    return test_end();
}
