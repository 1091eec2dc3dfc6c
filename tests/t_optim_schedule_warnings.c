/* Schedules that can hardly be meant are said with their numbers, others not; and where a run ends
 * is known however long it is. */
// TEST ranks=1 timeout=20
#include "optim/schedule.h"
#include "test.h"

#include <string.h>

int main(void)
{
    struct config cfg = {0};
    struct err_list said = {0};
    cfg.data.sequence_length = 32;
    cfg.train.steps = 100;
    cfg.train.global_batch = 8; /* 256 tokens a step, 25600 in all */
    cfg.optimizer.warmup_steps = 100;
    cfg.optimizer.lr_stages =
        (struct stages){2, {{10000, 2, STAGE_HOLD}, {25600 + 256, 1, STAGE_HOLD}}};
    schedule_warn(&cfg, &said);
    EXPECT(said.n == 0, "%s", said.text);
    cfg.optimizer.warmup_steps = 101;
    cfg.optimizer.lr_stages.at[1].until = 50000;
    cfg.train.mtp_loss_weight_stages = (struct stages){1, {{60, 0, STAGE_HOLD}}};
    schedule_warn(&cfg, &said);
    EXPECT(
        said.n == 3 && strstr(said.text, "warmup_steps: 101, but train.steps is 100: ") &&
            strstr(said.text, "weight_stages: the last stage ends at 60 tokens, in step 1 of ") &&
            strstr(said.text, "lr_stages: stage 1 ends at 50000 tokens, but the run at 25600 "),
        "%s", said.text);
    err_free(&said);
    cfg.train.global_batch_stages = (struct stages){1, {{8 * 32, 16, STAGE_HOLD}}};
    const struct progress from = {.step = 90, .samples = 3}, end = schedule_end(&cfg, &from);
    EXPECT(end.step == 100 && end.samples == 3 + 160 && end.tokens == 160 * 32, "%ld",
           (long)end.samples);
    cfg.train.steps = INT64_MAX;
    EXPECT(schedule_end(&cfg, &from).tokens == INT64_MAX, "a run without end");
    return test_end();
}
