/* Token counts of every expert change from step to step, memory does not: nothing is allocated
 * after the first step, activations are given back each step, everything at the end. */
// TEST ranks=1,4 timeout=60
#include "base/mem.h"
#include "base/rng.h"
#include "tests/run_rig.h"

#include <malloc.h>
#include <string.h>

enum { STEPS = 30, WARM = 10 };

/* Other experts are hot in every step, the same ones on all ranks. */
static void skew_routing(struct run *run)
{
    const uint64_t key = rng_key((uint64_t)run->progress.step, "skew");
    rng_fill_normal(run->model.bias, key, 0, (int64_t)run->model.n_moe * run->model.E, 0.2);
}

/* Blocks of our own, and bytes that libraries hold (MPI's and JSON's come and go). */
struct held {
    long live;
    size_t heap_bytes;
};
static struct held held_now(void)
{
    return (struct held){mem_live(), mallinfo2().uordblks};
}

static void check_run(const char *overrides)
{
    static struct run_rig rig;
    char all[256];
    struct held warm = {0};
    double least = 1e9, most = 0;
    snprintf(all, sizeof all, "train.steps=%d %s", STEPS, overrides);
    run_rig_init(&rig, "run", all);
    for (int s = 1; s <= STEPS; s++) {
        skew_routing(&rig.run);
        run_rig_step(&rig);
        if (s == WARM) warm = held_now();
        const double load = rig.run.expert_load[0];
        least = load < least ? load : least;
        most = load > most ? load : most;
    }
    const struct held end = held_now();
    EXPECT(most > 1.2 * least, "loads between %g and %g: the routing hardly changed", least, most);
    EXPECT(end.live == warm.live, "%ld blocks after step %d, %ld after step %d", warm.live, WARM,
           end.live, STEPS);
    /* One block kept a step, or a few bytes a layer and step, would be more than this. */
    EXPECT(end.heap_bytes < warm.heap_bytes + 16384, "%zu heap bytes after step %d, %zu after %d",
           warm.heap_bytes, WARM, end.heap_bytes, STEPS);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    int n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    run_rig_data();
    const long before = mem_live();
    check_run(n_ranks == 4 ? "topology.tp=2 topology.ep=4 train.compute_dtype=bf16" : "");
    EXPECT(mem_live() == before, "%ld blocks, %ld at the start", mem_live(), before);
    return test_end();
}
