/* plan.c - see plan.h. The code that is planned is setup.c's run_place and step.c's run_compute. */
#include "train/plan.h"

#include "train/run.h"

#include <string.h>

const char *memory_role_name(enum memory_role role)
{
    static const char *const names[N_ROLES] = {"weights",     "gradients", "optimizer",
                                               "activations", "staging",   "checkpoint"};
    return names[role];
}

size_t memory_total(const struct memory *memory)
{
    size_t sum = 0;
    for (int i = 0; i < N_ROLES; i++) sum += memory->role[i];
    return sum;
}

/* A step of one micro-batch; no arena needs more for a step of several. */
static void start_dry_run(struct run *run, const struct config *cfg, const struct mesh *mesh,
                          bool worst_routing)
{
    struct step_report report = {0};
    memset(run, 0, sizeof *run);
    run->cfg = cfg;
    run->mesh = *mesh;
    run->worst_routing = worst_routing;
    run_place(run, NULL);
    run_compute(run, 1, &report);
}

/* What the step has sent, and once more what one micro-batch sends for each other of the step. */
static void count_sent(struct plan *plan, struct run *run)
{
    plan->sent = run->comm.counts;
    comm_take_count(&run->comm);
    model_forward(&run->model, true);
    model_backward(&run->model);
    for (int k = 0; k < N_COMM_KINDS; k++)
        for (int a = 0; a < N_AXES; a++)
            comm_count_add(&plan->sent.of[k][a], &run->comm.counts.of[k][a], plan->n_micro - 1);
}

/* A planned run's mesh belongs to the caller. */
static struct memory end_dry_run(struct run *run)
{
    const struct config_data *data = &run->cfg->data;
    if (data->heldout.n > 0 || data->heldout_share > 0) model_forward(&run->model, false);
    const struct memory memory = run_memory(run);
    run_unplace(run);
    return memory;
}

void plan_rank(struct plan *plan, const struct config *cfg, const struct mesh *mesh)
{
    struct run run;
    memset(plan, 0, sizeof *plan);
    start_dry_run(&run, cfg, mesh, true);
    plan->worst = end_dry_run(&run);

    start_dry_run(&run, cfg, mesh, false);
    plan->n_micro = run.max_micro;
    for (int i = 0; i < run.params.n_params; i++) plan->n_params += run.params.param[i].n;
    count_sent(plan, &run);
    plan->balanced = end_dry_run(&run);
}
