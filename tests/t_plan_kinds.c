/* The plan of a whole job is made of the plans of its ranks: as many of them have a plan as there
 * are ranks of kinds with that plan. */
// TEST ranks=1 timeout=60
#include "test.h"
#include "train/plan.h"

#include <string.h>

enum { RANKS = 24 };

static bool equal(const struct plan *a, const struct plan *b)
{
    return !memcmp(&a->balanced, &b->balanced, sizeof a->balanced) &&
           !memcmp(&a->worst, &b->worst, sizeof a->worst) &&
           !memcmp(&a->sent, &b->sent, sizeof a->sent) && a->n_params == b->n_params;
}

/* Each rank by itself. */
static void plan_ranks(struct plan *plan, const struct config *cfg, const struct mesh_shape *shape)
{
    for (int r = 0; r < shape->size; r++) {
        struct mesh mesh;
        mesh_plan(&mesh, shape, r);
        plan_rank(&plan[r], cfg, &mesh);
        mesh_free(&mesh);
    }
}

static void check_kinds(const struct plan *plan, const struct rank_kind *kind, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        int want = 0, found = 0;
        for (int j = 0; j < n; j++)
            if (equal(&kind[i].plan, &kind[j].plan)) want += kind[j].n_ranks;
        for (int r = 0; r < RANKS; r++) found += equal(&kind[i].plan, &plan[r]);
        EXPECT(found == want, "%d ranks have the plan of kind %d, said to be %d", found, i, want);
        EXPECT(equal(&kind[i].plan, &plan[kind[i].first]), "rank %d is not of kind %d",
               kind[i].first, i);
        sum += kind[i].n_ranks;
    }
    EXPECT(sum == RANKS, "kinds of %d ranks together, %d are in the job", sum, RANKS);
}

/* alike: all ranks are of one kind. */
static void check_job(int tp, int ep, int ranks_per_node, const char *top_k, bool alike)
{
    const struct mesh_shape shape = {RANKS, tp, ep, ranks_per_node};
    static struct plan plan[RANKS];
    char experts[40], *overrides[] = {"data.train=none", "run.dir=none", "train.global_batch=48",
                                      "data.sequence_length=28", experts};
    struct config cfg;
    struct err_list errs = {0};
    snprintf(experts, sizeof experts, "model.num_experts_per_tok=%s", top_k);
    config_try_load(&cfg, "tests/tiny.yaml", 5, overrides, &errs);
    EXPECT(errs.n == 0, "%s", errs.text);
    cfg.topology = (struct config_topology){tp, ep, ranks_per_node};
    struct rank_kind *kind;
    const int n = plan_job(&kind, &cfg, &shape);
    EXPECT((n == 1) == alike, "tp %d, ep %d, %d ranks on a node, top-%s: %d kinds", tp, ep,
           ranks_per_node, top_k, n);
    plan_ranks(plan, &cfg, &shape);
    check_kinds(plan, kind, n);
    free(kind);
    err_free(&errs);
    config_free(&cfg);
}

int main(void)
{
    check_job(1, 1, 24, "4", true);
    check_job(1, 8, 8, "2", true);
    check_job(1, 8, 4, "2", true);
    check_job(4, 1, 4, "3", true);  /* without an exchange rows do not matter */
    check_job(2, 8, 8, "3", false); /* experts with unequal rows */
    check_job(2, 8, 24, "2", false);
    check_job(2, 4, 5, "4", false); /* groups across nodes, a smaller last node */
    check_job(4, 8, 7, "3", false);
    return test_end();
}
