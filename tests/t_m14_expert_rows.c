/* Every token goes to exactly K experts, once, in every MoE layer (the MTP module's too): summed
 * over experts, and in rows at the experts of all ranks, whatever the mesh. Forced balanced
 * routing is exactly even. */
// TEST ranks=1,2,4 timeout=60
#include "tests/run_rig.h"

static int64_t sum_over_ranks(int64_t x)
{
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return x;
}

static void check_sums(const struct run *run)
{
    const struct model *m = &run->model;
    const int64_t step_rows =
        (int64_t)run->cfg->train.global_batch * run->cfg->data.sequence_length * m->K;
    const int64_t micro_rows = m->flow.N * m->mesh->size * m->K;
    EXPECT(m->n_moe == 4, "%d MoE layers", m->n_moe);
    for (int l = 0; l < m->n_layers; l++) {
        int64_t sum = 0;
        const int moe = m->layer[l].moe;
        if (moe < 0) continue;
        for (int e = 0; e < m->E; e++) sum += run->expert_total[(int64_t)moe * m->E + e];
        const int64_t rows = sum_over_ranks(m->flow.acts[l].ex.M);
        EXPECT(sum == step_rows, "layer %d: %lld tokens over the experts, expected %lld", l,
               (long long)sum, (long long)step_rows);
        EXPECT(rows == micro_rows, "layer %d: %lld rows in a micro-batch, expected %lld", l,
               (long long)rows, (long long)micro_rows);
    }
}

static void check_even(const struct run *run)
{
    const struct model *m = &run->model;
    const int64_t each =
        (int64_t)run->cfg->train.global_batch * run->cfg->data.sequence_length * m->K / m->E;
    for (int l = 0; l < m->n_moe; l++)
        EXPECT(run->expert_load[l] == 1.0, "layer %d: load %.17g", l, run->expert_load[l]);
    for (int64_t i = 0; i < (int64_t)m->n_moe * m->E; i++)
        EXPECT(run->expert_total[i] == each, "expert %lld: %lld tokens, expected %lld",
               (long long)i, (long long)run->expert_total[i], (long long)each);
}

static void check_mesh(const struct run_rig_mesh *mesh)
{
    static struct run_rig rig;
    char overrides[256];
    snprintf(overrides, sizeof overrides,
             "topology.tp=%d topology.ep=%d train.steps=2 train.global_batch=4 "
             "train.micro_batch=%d debug.balanced_routing=true",
             mesh->tp, mesh->ep, 4 / (mesh->ranks / mesh->tp));
    run_rig_init(&rig, "run", overrides);
    run_rig_step(&rig);
    check_sums(&rig.run);
    check_even(&rig.run);
    rig.run.model.forced = NULL; /* from here on the router chooses */
    run_rig_step(&rig);
    check_sums(&rig.run); /* the counts started from zero */
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    const int n_ranks = run_rig_begin(&argc, &argv);
    for (int i = 0; i < RUN_RIG_N_MESHES; i++)
        if (run_rig_meshes[i].ranks == n_ranks) check_mesh(&run_rig_meshes[i]);
    return test_end();
}
