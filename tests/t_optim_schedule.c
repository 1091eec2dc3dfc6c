/* Schedules at their corner points: warm-up, decay to the last step, stages, ramp, the paper's. */
// TEST ranks=1 timeout=20
#include "optim/schedule.h"
#include "test.h"

#include <math.h>

/* A few roundings of F64. */
#define EXPECT_NEAR(got, want)                                                                     \
    EXPECT(fabs((got) - (want)) <= 1e-13 * fabs(want), "%.17g, expected %.17g", (double)(got),     \
           (double)(want))

static double lr_at(const struct config *cfg, int64_t step, double tokens)
{
    return schedule_lr(cfg, &(struct progress){.step = step, .tokens = (int64_t)tokens});
}

static void check_warmup_and_decay(void)
{
    struct config cfg = {0};
    cfg.train.steps = 110;
    cfg.optimizer = (struct config_optimizer){
        .lr = 3e-4, .min_lr = 3e-5, .schedule = LR_CONSTANT, .warmup_steps = 10};
    for (int s = 0; s < 10; s++) EXPECT_NEAR(lr_at(&cfg, s, 0), 3e-4 * (s + 1) / 10);
    EXPECT_NEAR(lr_at(&cfg, 109, 0), 3e-4);
    cfg.optimizer.schedule = LR_LINEAR;
    EXPECT_NEAR(lr_at(&cfg, 4, 0), 1.5e-4);
    EXPECT_NEAR(lr_at(&cfg, 9, 0), 3e-4);
    EXPECT_NEAR(lr_at(&cfg, 59, 0), 1.65e-4);
    EXPECT_NEAR(lr_at(&cfg, 109, 0), 3e-5);
    EXPECT_NEAR(lr_at(&cfg, 500, 0), 3e-5);
    cfg.optimizer.schedule = LR_COSINE;
    EXPECT_NEAR(lr_at(&cfg, 9, 0), 3e-4);
    EXPECT_NEAR(lr_at(&cfg, 34, 0), 3e-5 + 2.7e-4 * (0.5 + sqrt(0.125)));
    EXPECT_NEAR(lr_at(&cfg, 59, 0), 1.65e-4);
    EXPECT_NEAR(lr_at(&cfg, 109, 0), 3e-5);
    cfg.optimizer.warmup_steps = 0;
    EXPECT_NEAR(lr_at(&cfg, 54, 0), 1.65e-4);
    cfg.optimizer.warmup_steps = 200; /* longer than the run */
    EXPECT_NEAR(lr_at(&cfg, 109, 0), 3e-4 * 110 / 200);
}

static void check_stages(void)
{
    const struct stages none = {0};
    EXPECT(schedule_stages(&none, 5.0, 1e9) == 5.0, "without stages the base value stays");
    const struct stages s = {
        4,
        {{10, 2, STAGE_HOLD}, {20, 4, STAGE_LINEAR}, {30, 0, STAGE_COSINE}, {40, 1, STAGE_HOLD}}};
    static const double at[][2] = {{0, 2},  {9.5, 2}, {10, 2}, {15, 3}, {20, 4},
                                   {25, 2}, {30, 1},  {39, 1}, {40, 1}, {1e6, 1}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        EXPECT_NEAR(schedule_stages(&s, 7.0, at[i][0]), at[i][1]);
    const struct stages from_base = {1, {{10, 2, STAGE_LINEAR}}};
    EXPECT_NEAR(schedule_stages(&from_base, 1.0, 5.0), 1.5);

    struct config cfg = {0};
    cfg.optimizer = (struct config_optimizer){
        .lr = 7.0, .schedule = LR_STAGES, .lr_stages = s, .warmup_steps = 4};
    EXPECT_NEAR(lr_at(&cfg, 1, 15), 3.0 * 0.5); /* unit tokens; warm-up counts steps */
    EXPECT_NEAR(lr_at(&cfg, 15, 0), 2.0);
    cfg.train.schedule_unit = UNIT_STEPS;
    EXPECT_NEAR(lr_at(&cfg, 15, 0), 3.0);
    cfg.train.router_bias_speed_stages = cfg.train.mtp_loss_weight_stages = s;
    const struct progress p = {.step = 25};
    EXPECT_NEAR(schedule_router_bias_speed(&cfg, &p), 2.0);
    EXPECT_NEAR(schedule_mtp_loss_weight(&cfg, &p), 2.0);
}

static void check_ramp(void)
{
    struct config cfg = {0};
    cfg.train.global_batch = 8;
    cfg.train.schedule_unit = UNIT_STEPS;
    EXPECT(schedule_global_batch(&cfg, &(struct progress){.step = 9}) == 8, "no ramp, no change");
    cfg.train.global_batch_stages = (struct stages){1, {{100, 40, STAGE_LINEAR}}};
    int last = 0;
    for (int multiple = 0; multiple <= 8; multiple += 4)
        for (int64_t s = last = 0; s <= 120; s++) {
            const int unit = multiple ? multiple : 8;
            cfg.train.global_batch_multiple = multiple;
            const int got = schedule_global_batch(&cfg, &(struct progress){.step = s});
            /* in integers: 8 + 32 s / 100, rounded down to the unit */
            const int want = s < 100 ? (int)(800 + 32 * s) / (100 * unit) * unit : 40;
            EXPECT(got == want && got >= last, "multiple %d step %d: batch %d, expected %d",
                   multiple, (int)s, got, want);
            last = got;
        }
    cfg.train.global_batch_multiple = 16; /* more than the start: one unit at least */
    EXPECT(schedule_global_batch(&cfg, &(struct progress){0}) == 16, "batch below its unit");
}

/* Section 4.2 of the DeepSeek-V3 report, as the ready run file has it. */
static void check_paper(void)
{
    struct config cfg;
    struct err_list errs = {0};
    const int bad =
        config_try_load(&cfg, "configs/runs/deepseek-v3-671b-2048gpu.yaml", 0, NULL, &errs);
    EXPECT(!bad, "%s", errs.text);
    if (bad) return;
    static const struct {
        double tokens, lr;
        int batch;
        double bias_speed, mtp_weight;
    } points[] = {{0, 2.2e-4, 3072, 1e-3, 0.3},          {234.5e9, 2.2e-4, 9216, 1e-3, 0.3},
                  {469e9, 2.2e-4, 15360, 1e-3, 0.3},     {9.999e12, 2.2e-4, 15360, 1e-3, 0.3},
                  {10e12, 2.2e-4, 15360, 1e-3, 0.1},     {12.15e12, 1.21e-4, 15360, 1e-3, 0.1},
                  {14.299e12, 2.2e-5, 15360, 1e-3, 0.1}, {14.3e12, 2.2e-5, 15360, 0.0, 0.1},
                  {14.632e12, 2.2e-5, 15360, 0.0, 0.1},  {14.633e12, 7.3e-6, 15360, 0.0, 0.1},
                  {14.8e12, 7.3e-6, 15360, 0.0, 0.1}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        const struct progress p = {.step = 100000, .tokens = (int64_t)points[i].tokens};
        /* The cosine's last 10^9 tokens of 4.3 * 10^12 change it by 2e-7 of its height. */
        EXPECT(fabs(schedule_lr(&cfg, &p) / points[i].lr - 1.0) < 2e-6, "%g tokens: lr %g",
               points[i].tokens, schedule_lr(&cfg, &p));
        EXPECT(schedule_global_batch(&cfg, &p) == points[i].batch, "%g tokens: batch %d",
               points[i].tokens, schedule_global_batch(&cfg, &p));
        EXPECT_NEAR(schedule_router_bias_speed(&cfg, &p), points[i].bias_speed);
        EXPECT_NEAR(schedule_mtp_loss_weight(&cfg, &p), points[i].mtp_weight);
    }
    EXPECT_NEAR(lr_at(&cfg, 0, 0), 2.2e-4 / 2000);
    EXPECT_NEAR(lr_at(&cfg, 1999, 1e10), 2.2e-4);
    const struct progress start = {0}, p = schedule_end(&cfg, &start);
    schedule_warn(&cfg, &errs);
    EXPECT(errs.n == 0, "%s", errs.text);
    EXPECT(fabs((double)p.tokens - 14.8e12) < 15360.0 * 4096, "the steps take %.6g tokens",
           (double)p.tokens);
    config_free(&cfg);
}

int main(void)
{
    check_warmup_and_decay();
    check_stages();
    check_ramp();
    check_paper();
    return test_end();
}
