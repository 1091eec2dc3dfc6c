/* All tokens to the experts of one rank, the first, the last or in turns: ranks that receive
 * nothing take part in every exchange, the busy one holds four times its share in exactly the
 * memory that was planned for it, and training is that of experts on every rank. Rows beyond 2^31
 * elements. */
// TEST ranks=4 timeout=60
#include "base/rng.h"
#include "tests/run_rig.h"

#include <math.h>

enum { STEPS = 5, RANKS = 4 };

/* One group is kept and a group lies on one rank at ep 4: the biases choose the rank. */
static void send_all_to(struct run_rig *rig, int rank)
{
    const int per_rank = rig->run.model.E / RANKS;
    for (int e = 0; e < rig->run.model.E; e++)
        run_rig_set_bias(rig, e, e / per_rank == rank ? 100.0f : 0.0f);
}

/* After a step: rows that arrived at this rank's experts in every layer's last micro-batch. */
static void check_rows(const struct run_rig *rig, int target)
{
    const struct model *m = &rig->run.model;
    const int64_t all = m->flow.N * m->mesh->size * m->K;
    for (int l = 0; l < m->n_layers; l++) {
        const int64_t want = m->mesh->rank == target ? all : 0;
        if (m->layer[l].moe < 0 || m->mesh->ep == 1) continue;
        EXPECT(m->flow.acts[l].ex.M == want, "layer %d: %lld rows, expected %lld", l,
               (long long)m->flow.acts[l].ex.M, (long long)want);
    }
}

/* The plan's figures are what the run takes, to the byte. */
static void check_memory(const struct run *run, const struct model_memory *plan)
{
    const struct model *m = &run->model;
    EXPECT(m->stack.peak == plan->stack && m->scratch.peak == plan->scratch,
           "took %zu bytes of activations and %zu of scratch, planned %zu and %zu", m->stack.peak,
           m->scratch.peak, plan->stack, plan->scratch);
}

static const int everything_to_first[STEPS] = {0, 0, 0, 0, 0};
static const int everything_to_last[STEPS] = {3, 3, 3, 3, 3};
static const int alternating[STEPS] = {0, 3, 1, 0, 3};

static void train(const char *name, const char *overrides, const int *target)
{
    static struct run_rig rig;
    char all[512];
    snprintf(all, sizeof all, "model.num_experts_per_tok=2 model.topk_group=1 %s", overrides);
    run_rig_init(&rig, name, all);
    for (int s = 0; s < STEPS; s++) {
        send_all_to(&rig, target[s]);
        run_rig_step(&rig);
        check_rows(&rig, target[s]);
        if (rig.run.mesh.ep > 1 && rig.run.mesh.rank == target[s])
            check_memory(&rig.run, &rig.run.plan.worst.activations);
    }
    run_rig_free(&rig);
}

static void compare(const char *name, const int *target)
{
    char ep1[32];
    snprintf(ep1, sizeof ep1, "%s-ep1", name);
    train(ep1, "", target);
    train(name, "topology.ep=4", target);
    run_rig_compare(ep1, name, "1e-5"); /* F32 sums in another order */
}

/* A token has more experts than a rank: the most that can come is then each of the rank's own. */
static void check_all_of_a_rank(void)
{
    static struct run_rig rig;
    run_rig_init(&rig, "wide", "topology.ep=4 model.num_experts_per_tok=4 model.topk_group=2");
    const struct model *m = &rig.run.model;
    for (int e = 0; e < 2 * m->E_l; e++) run_rig_set_bias(&rig, e, 100.0f);
    run_rig_step(&rig);
    const int64_t want = m->mesh->rank < 2 ? m->flow.N * m->mesh->size * m->E_l : 0;
    EXPECT(m->flow.acts[1].ex.M == want, "%lld rows, expected %lld",
           (long long)m->flow.acts[1].ex.M, (long long)want);
    if (want > 0) check_memory(&rig.run, &rig.run.plan.worst.activations);
    run_rig_free(&rig);
}

/* The plan's other figure: every rank's experts get their mean share. */
static void check_expected_memory(void)
{
    static struct run_rig rig;
    run_rig_init(&rig, "balanced", "topology.ep=4 debug.balanced_routing=true");
    run_rig_step(&rig);
    check_memory(&rig.run, &rig.run.plan.balanced.activations);
    run_rig_free(&rig);
}

/* Row 300,000 of width 7168 begins beyond 2^31 elements. The memory before it is never touched. */
static void check_far_row(void)
{
    enum { ROW = 300000, D = 7168 };
    struct stream *s = backend_cpu.stream_create(1);
    const size_t bytes = (size_t)(ROW + 1) * D * sizeof(bf16);
    bf16 *src = backend_cpu.alloc(bytes, "far rows"), *dst = backend_cpu.alloc(D * 2, "one row");
    const int32_t index = ROW;
    const int64_t first = (int64_t)ROW * D;
    EXPECT(first == 2150400000, "row %d begins at element %lld", ROW, (long long)first);
    for (int d = 0; d < D; d++) src[first + d] = (bf16)rng_u64(1, (uint64_t)d);
    backend_cpu.gather_rows(s, dst, src, &index, 1, DTYPE_BF16, 1, D);
    int n_wrong = 0;
    for (int d = 0; d < D; d++) n_wrong += dst[d] != (bf16)rng_u64(1, (uint64_t)d);
    EXPECT(n_wrong == 0, "%d of %d elements of the far row are wrong", n_wrong, D);
    backend_cpu.free(dst);
    backend_cpu.free(src);
    backend_cpu.stream_destroy(s);
}

int main(int argc, char **argv)
{
    run_rig_begin(&argc, &argv);
    compare("first", everything_to_first);
    compare("last", everything_to_last);
    compare("turns", alternating);
    train("last-tp", "topology.ep=4 topology.tp=2", everything_to_last);
    run_rig_compare("last", "last-tp", "1e-5");
    check_all_of_a_rank();
    check_expected_memory();
    check_far_row();
    return test_end();
}
