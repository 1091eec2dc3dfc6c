/* A run takes what was planned, to the byte, on every rank: memory of every role, and bytes of
 * every kind of collective on every axis, with balanced routing; memory also when one rank's
 * experts get everything. With other routings no role takes more than planned for that case. */
// TEST ranks=1,2,4 timeout=120
#include "base/rng.h"
#include "tests/run_rig.h"

#include <string.h>

enum { STEPS = 2 };

static void check_memory(const struct run *run, const struct memory *planned, const char *what)
{
    const struct memory used = run_memory(run);
    const struct model_memory *u = &used.activations, *p = &planned->activations;
    for (int i = 0; i < N_ROLES; i++)
        EXPECT(used.role[i] == planned->role[i], "%s: %zu bytes of %s, planned %zu", what,
               used.role[i], memory_role_name(i), planned->role[i]);
    EXPECT(u->state == p->state && u->stack == p->stack && u->scratch == p->scratch,
           "%s: state, stack, scratch of %zu, %zu, %zu bytes, planned %zu, %zu, %zu", what,
           u->state, u->stack, u->scratch, p->state, p->stack, p->scratch);
    EXPECT(memory_total(&used) == memory_total(planned), "%s: %zu bytes, planned %zu", what,
           memory_total(&used), memory_total(planned));
}

/* The tokens of the step before are still there: once more the same step, by itself. */
static void check_sent(struct run *run, const char *what)
{
    struct step_report report = {0};
    comm_take_count(&run->comm);
    run_compute(run, run->max_micro, &report);
    for (int k = 0; k < N_COMM_KINDS; k++) {
        for (int a = 0; a < N_AXES; a++) {
            const struct comm_count *c = &run->comm.counts.of[k][a], *p = &run->plan.sent.of[k][a];
            EXPECT(c->calls == p->calls && c->bytes_intra == p->bytes_intra &&
                       c->bytes_inter == p->bytes_inter,
                   "%s, %s over %s: %lld calls, %lld bytes on the node, %lld to others; planned "
                   "%lld, %lld, %lld",
                   what, comm_kind_name(k), axis_name(a), (long long)c->calls,
                   (long long)c->bytes_intra, (long long)c->bytes_inter, (long long)p->calls,
                   (long long)p->bytes_intra, (long long)p->bytes_inter);
        }
    }
    comm_take_count(&run->comm);
}

static void check_balanced(const char *overrides)
{
    static struct run_rig rig;
    char all[512];
    snprintf(all, sizeof all, "debug.balanced_routing=true %s", overrides);
    run_rig_init(&rig, "balanced", all);
    for (int s = 0; s < STEPS; s++) run_rig_step(&rig);
    check_memory(&rig.run, &rig.run.plan.balanced, overrides);
    check_sent(&rig.run, overrides);
    run_rig_free(&rig);
}

/* One group is kept and it lies on the target: all tokens choose that rank, in every layer. */
static void check_worst(int ranks)
{
    static struct run_rig rig;
    char all[256];
    snprintf(all, sizeof all,
             "topology.ep=%d model.n_group=%d model.topk_group=1 model.num_experts_per_tok=2",
             ranks, ranks);
    run_rig_init(&rig, "worst", all);
    const struct model *m = &rig.run.model;
    for (int e = 0; e < m->E; e++) run_rig_set_bias(&rig, e, e / m->E_l == ranks - 1 ? 100 : 0);
    run_rig_step(&rig);
    const struct memory used = run_memory(&rig.run), *planned = &rig.run.plan.worst;
    if (m->mesh->rank == ranks - 1)
        check_memory(&rig.run, planned, "all to the last rank");
    else
        EXPECT(memory_total(&used) < memory_total(planned), "a rank without rows takes the worst");
    run_rig_free(&rig);
}

/* Experts chosen by a random bias, others in every step: never beyond the worst case. */
static void check_natural(const char *overrides)
{
    static struct run_rig rig;
    run_rig_init(&rig, "natural", overrides);
    for (int s = 0; s < 2 * STEPS; s++) {
        const struct model *m = &rig.run.model;
        rng_fill_normal(m->bias, rng_key((uint64_t)s, "skew"), 0, (int64_t)m->n_moe * m->E, 0.5);
        run_rig_step(&rig);
    }
    const struct memory used = run_memory(&rig.run), *worst = &rig.run.plan.worst;
    for (int i = 0; i < N_ROLES; i++)
        EXPECT(used.role[i] <= worst->role[i] &&
                   (i == ROLE_ACTIVATIONS || used.role[i] == worst->role[i]),
               "%s: %zu bytes of %s, at most %zu planned", overrides, used.role[i],
               memory_role_name(i), worst->role[i]);
    run_rig_free(&rig);
}

/* Sequences of 28 tokens and 3 experts a token leave experts with unequal rows. */
#define UNEVEN " data.sequence_length=28 model.num_experts_per_tok=3"

static const struct {
    int ranks;
    const char *overrides;
} cases[] = {
    {1, "train.compute_dtype=f32"},
    {1, "train.compute_dtype=bf16 train.micro_batch=2 debug.token_hash=false" UNEVEN},
    {1, "model.num_nextn_predict_layers=0 model.q_lora_rank=null optimizer.moments_dtype=bf16"},
    {2, "train.compute_dtype=bf16 topology.ranks_per_node=1"},
    {2, "topology.ep=2" UNEVEN},
    {2, "topology.tp=2 model.num_nextn_predict_layers=2 model.n_shared_experts=0"},
    {4, "topology.ep=2 topology.ranks_per_node=3 train.compute_dtype=bf16"},
    {4, "topology.tp=2 topology.ep=4 topology.ranks_per_node=2" UNEVEN},
    {4, "topology.tp=4 topology.ep=2 topology.ranks_per_node=2 model.q_lora_rank=null"},
    {4, "topology.tp=2 topology.ep=2 train.compute_dtype=bf16 train.micro_batch=2" UNEVEN},
};

int main(int argc, char **argv)
{
    const int ranks = run_rig_begin(&argc, &argv);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].ranks == ranks) check_balanced(cases[i].overrides);
    if (ranks > 1) check_worst(ranks);
    check_natural(ranks > 1 ? "topology.ep=2" : "train.compute_dtype=bf16");
    return test_end();
}
