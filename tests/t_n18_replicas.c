/* After ten steps every copy of a value is the same bits on all ranks that hold it: replicated
 * tensors everywhere, tensors split over tp on all dp ranks, experts on all edp ranks, selection
 * biases everywhere. And they are the right ones: the losses are those without tp. */
// TEST ranks=4 timeout=60
#include "tests/run_rig.h"

#include <string.h>
#include <xxhash.h>

enum { STEPS = 10, RANKS = 4 };

static void check_equal(const struct mesh_axis *axis, const void *x, size_t bytes, const char *what)
{
    uint64_t all[RANKS], hash = XXH64(x, bytes, 0);
    MPI_Allgather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, axis->comm);
    for (int r = 0; r < axis->size; r++)
        EXPECT(all[r] == hash, "%s differs between ranks %d and %d", what, axis->world_rank[r],
               axis->world_rank[axis->rank]);
}

/* Different experts on different ranks, or the comparison above would compare nothing. */
static void check_experts_differ(const struct run *run)
{
    const struct param *p =
        param_find((struct param_table *)&run->params, "model.layers.1.mlp.experts.up_proj.weight");
    const int64_t each = p->n / p->local_dim[0];
    uint64_t all[RANKS * 8], mine[8];
    const struct mesh_axis *ep = &run->mesh.axis[AXIS_EP];
    const int n_local = (int)p->local_dim[0], n = n_local * ep->size;
    for (int e = 0; e < n_local; e++)
        mine[e] = XXH64((float *)p->w + e * each, (size_t)each * sizeof(float), 0);
    MPI_Allgather(mine, n_local, MPI_UINT64_T, all, n_local, MPI_UINT64_T, ep->comm);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++)
            EXPECT(all[a] != all[b], "experts %d and %d are the same", a, b);
}

/* Who holds the same part of a tensor; not from its group, so that a wrong group shows. */
static enum axis copies_along(const struct param *p)
{
    if (p->n == p->n_all) return AXIS_WORLD; /* the router, norms, ... */
    return strstr(p->name, ".mlp.experts.") ? AXIS_EDP : AXIS_DP;
}

static void train(struct run_rig *rig, const char *name, const char *overrides)
{
    char all[256];
    snprintf(all, sizeof all, "train.steps=%d train.router_bias_speed=0.01 %s", STEPS, overrides);
    run_rig_init(rig, name, all);
    for (int s = 0; s < STEPS; s++) run_rig_step(rig);
}

static void check_mesh(const char *name, const char *overrides)
{
    static struct run_rig rig;
    train(&rig, name, overrides);
    const struct run *run = &rig.run;
    for (int i = 0; i < run->params.n_params; i++) {
        const struct param *p = &run->params.param[i];
        check_equal(&run->mesh.axis[copies_along(p)], p->w, (size_t)p->n * dtype_bytes(p->dtype),
                    p->name);
    }
    const struct model *m = &run->model;
    check_equal(&run->mesh.axis[AXIS_WORLD], m->bias,
                (size_t)m->n_moe * (size_t)m->E * sizeof(float), "the selection bias");
    check_experts_differ(run);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    static struct run_rig rig;
    run_rig_begin(&argc, &argv);
    train(&rig, "tp1", "");
    run_rig_free(&rig);
    check_mesh("tp2", "topology.tp=2 topology.ep=2");
    run_rig_compare("tp1", "tp2", "1e-5");
    check_mesh("bf16", "topology.tp=2 topology.ep=4 train.compute_dtype=bf16");
    check_mesh("moments", "topology.ep=2 optimizer.moments_dtype=bf16");
    return test_end();
}
