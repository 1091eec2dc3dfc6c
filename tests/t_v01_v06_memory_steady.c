/* Token counts of every expert change at random in 2000 steps, memory does not: nothing is
 * allocated after the first steps, reserved and resident memory stay within 1 %, and at the end of
 * every step each role holds what it keeps for ever, activations, scratch and staging nothing. */
// TEST ranks=1,2 timeout=100 san=0 ASAN_OPTIONS=quarantine_size_mb=4
#include "base/mem.h"
#include "base/rng.h"
#include "tests/run_rig.h"

#include <malloc.h>

enum { STEPS = 2000, STEPS_OF_TWO_RANKS = 500, WARM = 50 };

/* Other experts are hot in every step, the same ones on all ranks. */
static void skew_routing(struct run *run)
{
    const uint64_t key = rng_key((uint64_t)run->progress.step, "skew");
    rng_fill_normal(run->model.bias, key, 0, (int64_t)run->model.n_moe * run->model.E, 0.2);
}

static size_t resident_bytes(void)
{
    long pages = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    EXPECT(in && fscanf(in, "%*d %ld", &pages) == 1, "cannot read /proc/self/statm");
    if (in) fclose(in);
    return (size_t)pages * (size_t)getpagesize();
}

/* Blocks of our own; what libraries use, what they have reserved for it, and all of the process
 * (MPI's and JSON's blocks come and go). */
struct held {
    long live;
    size_t heap_used, heap_reserved, resident;
};
static struct held held_now(void)
{
    const struct mallinfo2 heap = mallinfo2();
    return (struct held){mem_live(), heap.uordblks, heap.arena + heap.hblkhd, resident_bytes()};
}

static void check_held(const struct held *warm, int step)
{
    const struct held now = held_now();
    EXPECT(now.live == warm->live, "step %d: %ld blocks, %ld after step %d", step, now.live,
           warm->live, WARM);
    /* MPI takes some 50 KB when it first queues messages; a block kept a step would be more. */
    EXPECT(now.heap_used < warm->heap_used + 64 * STEPS, "step %d: %zu heap bytes, %zu after %d",
           step, now.heap_used, warm->heap_used, WARM);
    EXPECT((double)now.heap_reserved <= 1.01 * (double)warm->heap_reserved,
           "step %d: %zu bytes reserved, %zu after step %d", step, now.heap_reserved,
           warm->heap_reserved, WARM);
    EXPECT((double)now.resident <= 1.01 * (double)warm->resident,
           "step %d: %zu bytes resident, %zu after step %d", step, now.resident, warm->resident,
           WARM);
}

static void check_roles(const struct run *run)
{
    const struct memory *p = &run->plan.worst;
    const struct {
        const struct arena *arena;
        size_t kept;
    } roles[] = {{&run->weights, p->role[ROLE_WEIGHTS]},
                 {&run->grads, p->role[ROLE_GRADIENTS]},
                 {&run->optimizer, p->role[ROLE_OPTIMIZER]},
                 {&run->model.state, p->activations.state},
                 {&run->model.stack, 0},
                 {&run->model.scratch, 0},
                 {&run->staging, 0}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        EXPECT(roles[i].arena->used == roles[i].kept, "step %lld: %s holds %zu bytes, expected %zu",
               (long long)run->progress.step, roles[i].arena->name, roles[i].arena->used,
               roles[i].kept);
}

static void check_run(int steps, const char *overrides)
{
    static struct run_rig rig;
    char all[512];
    struct held warm = {0};
    double least = 1e9, most = 0;
    snprintf(all, sizeof all,
             "train.steps=%d train.global_batch=4 train.micro_batch=4 train.log_every=%d "
             "data.sequence_length=8 debug.poison_memory=false "
             "model.hidden_size=16 model.num_hidden_layers=2 model.intermediate_size=16 "
             "model.moe_intermediate_size=8 %s",
             steps, steps, overrides);
    run_rig_init(&rig, "run", all);
    for (int s = 1; s <= steps; s++) {
        skew_routing(&rig.run);
        run_rig_step(&rig);
        check_roles(&rig.run);
        if (s == WARM) warm = held_now();
        if (s > WARM && s % WARM == 0) check_held(&warm, s);
        const double load = rig.run.expert_load[0];
        least = load < least ? load : least;
        most = load > most ? load : most;
    }
    EXPECT(most > 1.2 * least, "loads between %g and %g: the routing hardly changed", least, most);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    const int n_ranks = run_rig_begin(&argc, &argv);
    const long before = mem_live();
    if (n_ranks == 1) check_run(STEPS, "");
    if (n_ranks == 2)
        check_run(STEPS_OF_TWO_RANKS, "topology.tp=2 topology.ep=2 train.compute_dtype=bf16");
    EXPECT(mem_live() == before, "%ld blocks, %ld at the start", mem_live(), before);
    return test_end();
}
