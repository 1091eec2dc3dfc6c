/* A bad value in one rank's gradient: the norm does not fit, all ranks name the tensor and the rank
 * that it came from. */
// TEST ranks=4 timeout=30
#include "optim_rig.h"
#include "test.h"

#include <math.h>

static struct rig rig;

static double norm_of_gradients(void)
{
    optim_reduce_gradients(&rig.opt);
    return optim_grad_norm(&rig.opt);
}

/* Gradients of a step, not yet reduced; they replace what an earlier check has left. */
static void make_gradients(double clip)
{
    rig.cfg.optimizer.clip = clip;
    optim_zero_gradients(&rig.opt);
    EXPECT(norm_of_gradients() == 0, "gradients are left");
    rig_add_gradients(&rig, 1);
}

/* The value goes into the named tensor's last element on one rank, or on all (rank -1). */
static void check_found(const char *tensor, int rank, float value, double clip)
{
    make_gradients(clip);
    struct param *p = param_find(&rig.params, tensor);
    if (rank < 0 || rig.mesh.rank == rank) p->grad[p->n - 1] = value;
    const double norm = norm_of_gradients();
    EXPECT(!optim_norm_fits(&rig.opt, norm), "%g in %s: a norm of %g fits", value, tensor, norm);
    const struct optim_fault fault = optim_find_fault(&rig.opt, norm);
    EXPECT(fault.param == p && (fault.rank == rank || rank < 0),
           "%g in %s of rank %d: found %s of rank %d", value, tensor, rank, fault.param->name,
           fault.rank);
}

/* The first of two tensors in the table, whichever rank has it. */
static void check_first(void)
{
    make_gradients(1.0);
    struct param *head = param_find(&rig.params, "lm_head.weight");
    struct param *gate = param_find(&rig.params, "model.layers.1.mlp.gate.weight");
    if (rig.mesh.rank == 0) head->grad[0] = NAN;
    if (rig.mesh.rank >= 2) gate->grad[0] = NAN;
    const struct optim_fault fault = optim_find_fault(&rig.opt, norm_of_gradients());
    EXPECT(fault.param == gate && fault.rank == 2, "found %s of rank %d", fault.param->name,
           fault.rank);
}

/* A huge but finite value is clipped; its own element gets the whole of the clip, others nothing,
 * and no moment is spoiled. */
static void check_clipped(void)
{
    make_gradients(1.0);
    struct param *p = param_find(&rig.params, "lm_head.weight");
    if (rig.mesh.rank == 1) p->grad[0] = 1e38f;
    const double norm = norm_of_gradients();
    EXPECT(optim_norm_fits(&rig.opt, norm), "norm %g does not fit", norm);
    optim_step(&rig.opt, 1, 1e-3, norm);
    double most = 0;
    for (int i = 0; i < N_BUCKETS; i++)
        for (int64_t j = 0; j < rig.params.bucket[i].n_shard; j++) {
            const double m = ((float *)rig.opt.m[i])[j], v = ((float *)rig.opt.v[i])[j];
            EXPECT(isfinite(m) && isfinite(v), "bucket %d: moments %g, %g", i, m, v);
            most = fmax(most, m);
        }
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    /* (1 - beta1) clip; the scale of 1e-38 is a subnormal F32 number with 23 bits. */
    EXPECT(fabs(most - 0.1) < 1e-6, "largest first moment %.9g, expected 0.1", most);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct config cfg = rig_config();
    cfg.topology.tp = cfg.topology.ep = 2;
    rig_init(&rig, &cfg, false);
    /* Reduced over the world, over dp and over edp; the value may also lie in the rank's own shard.
     */
    static const char *const tensors[] = {"model.norm.weight", "lm_head.weight",
                                          "model.layers.1.mlp.experts.down_proj.weight"};
    for (int i = 0; i < 3; i++)
        for (int rank = 0; rank < 4; rank++) {
            check_found(tensors[i], rank, NAN, 1.0);
            check_found(tensors[i], rank, -INFINITY, 1.0);
            check_found(tensors[i], rank, 1e38f, 0.0); /* its square does not fit */
        }
    check_found("lm_head.weight", -1, 3e38f, 1.0); /* only the sum over ranks is not finite */
    check_first();
    check_clipped(); /* the first that makes a step */
    rig_free(&rig);
    EXPECT(mem_live() == 0, "%ld blocks not freed", mem_live());
    return test_end();
}
