/*
 * schedule.c - learning rate, batch, bias speed and MTP weight as functions of the progress; see
 * schedule.h. Nothing here keeps state, so a resumed run continues its schedules by itself.
 */
#include "optim/schedule.h"

#include <math.h>

static double blend(enum stage_shape shape, double from, double to, double fraction)
{
    const double pi = 3.14159265358979323846;
    switch (shape) {
    case STAGE_HOLD: return to;
    case STAGE_LINEAR: return from + (to - from) * fraction;
    case STAGE_COSINE: return to + (from - to) * 0.5 * (1.0 + cos(pi * fraction));
    }
    return to;
}

double schedule_stages(const struct stages *stages, double base, double at)
{
    double from = base, start = 0.0;
    for (int i = 0; i < stages->n; i++) {
        const struct stage *stage = &stages->at[i];
        if (at < stage->until)
            return blend(stage->shape, from, stage->value, (at - start) / (stage->until - start));
        from = stage->value;
        start = stage->until;
    }
    return from;
}

static double position(const struct config *cfg, const struct progress *at)
{
    return (double)(cfg->train.schedule_unit == UNIT_TOKENS ? at->tokens : at->step);
}

double schedule_lr(const struct config *cfg, const struct progress *at)
{
    const struct config_optimizer *o = &cfg->optimizer;
    const double next = (double)(at->step + 1), warmup = (double)o->warmup_steps;
    const double warm = next < warmup ? next / warmup : 1.0;
    if (o->schedule == LR_CONSTANT) return o->lr * warm;
    if (o->schedule == LR_STAGES)
        return schedule_stages(&o->lr_stages, o->lr, position(cfg, at)) * warm;

    if (next <= warmup) return o->lr * warm;
    /* The step that ends the run is the one that reaches min_lr; a longer run stays there. */
    const double span = (double)cfg->train.steps - warmup;
    const double done = span > 0.0 ? fmin((next - warmup) / span, 1.0) : 1.0;
    const enum stage_shape shape = o->schedule == LR_COSINE ? STAGE_COSINE : STAGE_LINEAR;
    return blend(shape, o->lr, o->min_lr, done);
}

int schedule_global_batch(const struct config *cfg, const struct progress *at)
{
    const struct config_train *t = &cfg->train;
    if (t->global_batch_stages.n == 0) return t->global_batch;
    const int multiple = t->global_batch_multiple ? t->global_batch_multiple : t->global_batch;
    const double wanted =
        schedule_stages(&t->global_batch_stages, (double)t->global_batch, position(cfg, at));
    /* A ramp that reaches a multiple but for the last bit of a division has reached it. */
    const int n = (int)floor(wanted / multiple + 1e-9);
    return (n > 1 ? n : 1) * multiple;
}

int schedule_largest_batch(const struct config *cfg)
{
    const struct stages *ramp = &cfg->train.global_batch_stages;
    int most = cfg->train.global_batch;
    for (int i = 0; i < ramp->n; i++) most = (int)fmax(most, ramp->at[i].value);
    return most;
}

int schedule_micro_batches(const struct config *cfg, int batch, int dp)
{
    return batch / (cfg->train.micro_batch * dp);
}

double schedule_router_bias_speed(const struct config *cfg, const struct progress *at)
{
    return schedule_stages(&cfg->train.router_bias_speed_stages, cfg->train.router_bias_speed,
                           position(cfg, at));
}

double schedule_mtp_loss_weight(const struct config *cfg, const struct progress *at)
{
    return schedule_stages(&cfg->train.mtp_loss_weight_stages, cfg->train.mtp_loss_weight,
                           position(cfg, at));
}
