/* Tokens an expert are counted in integers from the kernel over all ranks to the bias step: a
 * surplus of one in 40,841, or in 2^53, moves every bias the right way by exactly one step. */
// TEST ranks=1,4 timeout=30
#include "tests/run_rig.h"

enum { PARTS = 64 }; /* counts that are added up, over all ranks */

/* Every buffer on the way is of 64-bit integers. */
static const struct model *const m_type = NULL;
static const struct layer_acts *const a_type = NULL;
static const struct run *const run_type = NULL;
#define IS_INT64(x) _Generic((x), int64_t : 1, default : 0)
_Static_assert(IS_INT64(*a_type->count) && IS_INT64(*m_type->expert_count) &&
                   IS_INT64(*run_type->expert_total),
               "an expert count is not an int64_t");

/* Part number `part` of expert e's total: uneven, the last part brings it up. */
static int64_t part_of(int64_t total, int part, int e)
{
    const int64_t mean = total / PARTS;
    int64_t before = 0;
    for (int i = 0; i < part; i++) before += mean + (i * 37 + e * 11) % 69 - 34;
    return part == PARTS - 1 ? total - before : mean + (part * 37 + e * 11) % 69 - 34;
}

/* Expert 0 of every layer has one token less than the others. Through count_add, as a
 * micro-batch's counts come, and through the sum over ranks. */
static void check_total(struct run_rig *rig, int64_t most)
{
    struct run *run = &rig->run;
    struct model *m = &run->model;
    const float speed = 0.001f;
    int64_t count[16];
    for (int e = 0; e < m->E; e++) run_rig_set_bias(rig, e, 0);
    for (int part = run->mesh.rank; part < PARTS; part += run->mesh.size)
        for (int l = 0; l < m->n_moe; l++) {
            for (int e = 0; e < m->E; e++) count[e] = part_of(most - (e == 0), part, e);
            m->be->count_add(m->stream, m->expert_count + (int64_t)l * m->E, count, m->E);
        }
    model_update_router_bias(m, run->expert_total, speed);
    for (int64_t i = 0; i < (int64_t)m->n_moe * m->E; i++) {
        const int64_t want = most - (i % m->E == 0);
        EXPECT(run->expert_total[i] == want, "%lld tokens, expected %lld",
               (long long)run->expert_total[i], (long long)want);
        EXPECT(m->bias[i] == (i % m->E == 0 ? speed : -speed), "of %lld tokens: bias %.9g",
               (long long)want, (double)m->bias[i]);
        EXPECT(m->expert_count[i] == 0, "the next step starts with %lld tokens",
               (long long)m->expert_count[i]);
    }
}

int main(int argc, char **argv)
{
    static struct run_rig rig;
    run_rig_begin(&argc, &argv);
    run_rig_init(&rig, "run", "train.steps=1 optimizer.warmup_steps=0");
    check_total(&rig, 40841); /* 608 .. 676 a part; BF16 sums have a spacing of 256 there */
    check_total(&rig, (INT64_C(1) << 24) + 1); /* no F32 number, nor the next no F64 number */
    check_total(&rig, (INT64_C(1) << 53) + 1);
    run_rig_free(&rig);
    return test_end();
}
