/* There are no padded rows: the experts' buffers hold exactly the rows that were routed, of uneven
 * numbers, and memory that is NaN before every use changes no bit of losses and weights. */
// TEST ranks=1,4 timeout=60
#include "tests/run_rig.h"

enum { STEPS = 5 };

/* Rows of the last micro-batch of every layer. */
static void check_rows(const struct run *run)
{
    const struct model *m = &run->model;
    for (int l = 0; l < m->n_layers; l++) {
        int64_t rows = m->flow.acts[l].ex.M, routed = m->flow.N * m->mesh->size * m->K;
        if (m->layer[l].moe < 0) continue;
        MPI_Allreduce(MPI_IN_PLACE, &rows, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(rows == routed, "layer %d: %lld rows at all experts, %lld were routed", l,
               (long long)rows, (long long)routed);
    }
}

/* Row counts that 8 does not divide are what a product of aligned groups would pad. */
static bool has_uneven_counts(const struct run *run)
{
    bool uneven = false;
    for (int i = 0; i < run->model.n_moe * run->model.E; i++)
        uneven |= run->expert_total[i] % 8 != 0;
    return uneven;
}

struct weights {
    uint64_t hash;
    double l2;
};

static struct weights train(const char *name, const char *overrides, bool poison)
{
    static struct run_rig rig;
    struct weights after;
    char all[512];
    snprintf(all, sizeof all, "debug.poison_memory=%s %s", poison ? "true" : "false", overrides);
    run_rig_init(&rig, name, all);
    for (int s = 0; s < STEPS; s++) {
        run_rig_step(&rig);
        check_rows(&rig.run);
        EXPECT(has_uneven_counts(&rig.run), "step %d: all experts' counts are even", s + 1);
    }
    optim_param_hash(&rig.run.optim, &after.hash, &after.l2);
    run_rig_free(&rig);
    return after;
}

static void compare(const char *overrides)
{
    const struct weights clean = train("clean", overrides, false);
    const struct weights poisoned = train("poisoned", overrides, true);
    run_rig_compare("clean", "poisoned", "0");
    EXPECT(clean.hash == poisoned.hash && clean.l2 == poisoned.l2,
           "%s: weights' hash %016llx, with NaN in fresh memory %016llx", overrides,
           (unsigned long long)clean.hash, (unsigned long long)poisoned.hash);
}

int main(int argc, char **argv)
{
    const int n_ranks = run_rig_begin(&argc, &argv);
    compare(n_ranks == 4 ? "topology.ep=4" : "");
    compare(n_ranks == 4 ? "topology.ep=4 topology.tp=2 train.compute_dtype=bf16"
                         : "train.compute_dtype=bf16");
    return test_end();
}
