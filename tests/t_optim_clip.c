/* The clip coefficient is min(1, clip / (norm + 1e-6)), seen in the first moment of every shard. */
// TEST ranks=1,2 timeout=20
#include "optim_rig.h"
#include "test.h"

#include <math.h>

/* After the first step m = (1 - beta1) g c, whatever the norm the step was told. */
static void check(double clip, double norm, double want)
{
    static struct rig rig;
    struct config cfg = rig_config();
    cfg.optimizer.clip = clip;
    rig_init(&rig, &cfg, false);
    rig_add_gradients(&rig, 1);
    optim_reduce_gradients(&rig.opt);
    optim_step(&rig.opt, 1, 1e-3, norm);
    int64_t n_seen = 0;
    for (int i = 0; i < rig.params.n_params; i++) {
        const struct param *p = &rig.params.param[i];
        const struct bucket *b = &rig.params.bucket[p->bucket];
        const uint64_t key = rng_key(1, p->name);
        int64_t first, count;
        if (!param_in_shard(p, b, &first, &count)) continue;
        const float *m = (const float *)rig.opt.m[p->bucket] + (p->offset + first - b->shard0);
        for (int64_t j = 0; j < count; j++, n_seen++) {
            const double g = rig_gradient(key, param_global_index(p, &rig.mesh, first + j));
            /* F32 roundings of the coefficient, of 1 - beta1 and of two products */
            EXPECT(fabs(m[j] - 0.1 * g * want) <= 5e-7 * fabs(0.1 * g * want),
                   "clip %g norm %g: %s m %.9g, expected %.9g", clip, norm, p->name, m[j],
                   0.1 * g * want);
        }
    }
    EXPECT(n_seen > 0, "no element in this rank's shards");
    rig_free(&rig);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    check(1.0, 0.5, 1.0);
    check(1.0, 4.0 - 1e-6, 0.25);
    check(1e-6, 1e-6, 0.5); /* the 1e-6 counts */
    check(1.0, 0.0, 1.0);
    check(0.0, 1e6, 1.0); /* off */
    return test_end();
}
