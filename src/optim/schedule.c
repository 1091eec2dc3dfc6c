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

/* a + n * each. */
static int64_t add_times(int64_t a, int64_t n, int64_t each)
{
    int64_t sum;
    if (__builtin_mul_overflow(n, each, &sum) || __builtin_add_overflow(a, sum, &sum))
        return INT64_MAX;
    return sum;
}

/* n steps of the same batch. */
static void advance(struct progress *at, const struct config *cfg, int64_t n)
{
    const int batch = schedule_global_batch(cfg, at);
    at->step += n;
    at->samples = add_times(at->samples, n, batch);
    at->tokens = add_times(at->tokens, n, (int64_t)batch * cfg->data.sequence_length);
}

struct progress schedule_end(const struct config *cfg, const struct progress *from)
{
    const struct stages *ramp = &cfg->train.global_batch_stages;
    const double ramp_end = ramp->n ? ramp->at[ramp->n - 1].until : 0;
    struct progress at = *from;
    while (at.step < cfg->train.steps && position(cfg, &at) < ramp_end) advance(&at, cfg, 1);
    if (at.step < cfg->train.steps) advance(&at, cfg, cfg->train.steps - at.step);
    return at;
}

/* last: the position at which the run ends. */
static void warn_stages(const struct config *cfg, const char *key, const struct stages *stages,
                        double last, struct err_list *warnings)
{
    const bool in_tokens = cfg->train.schedule_unit == UNIT_TOKENS;
    const double largest = schedule_largest_batch(cfg);
    const double step = in_tokens ? largest * cfg->data.sequence_length : 1;
    const double until = stages->n ? stages->at[stages->n - 1].until : INFINITY;
    if (in_tokens && until <= (double)cfg->train.steps)
        err_add(warnings,
                "%s: the last stage ends at %.15g tokens, in step %.0f of %lld (a step has up to "
                "%.0f tokens); if until counts steps, set train.schedule_unit: steps",
                key, until, ceil(until / step), (long long)cfg->train.steps, step);
    for (int i = 0; i < stages->n; i++) {
        if (stages->at[i].until <= last + step)
            continue; /* a whole number of steps may fall short */
        err_add(warnings, "%s: stage %d ends at %.15g %s, but the run at %.15g (train.steps %lld)",
                key, i, stages->at[i].until, in_tokens ? "tokens" : "steps", last,
                (long long)cfg->train.steps);
    }
}

void schedule_warn(const struct config *cfg, struct err_list *warnings)
{
    const struct config_optimizer *o = &cfg->optimizer;
    const struct config_train *t = &cfg->train;
    const struct progress start = {0}, end = schedule_end(cfg, &start);
    const double last = position(cfg, &end);
    if (t->steps == 0) return; /* a model file */
    if (o->warmup_steps > t->steps)
        err_add(warnings,
                "optimizer.warmup_steps: %lld, but train.steps is %lld: the learning rate ends at "
                "%lld/%lld of what it should reach",
                (long long)o->warmup_steps, (long long)t->steps, (long long)t->steps,
                (long long)o->warmup_steps);
    warn_stages(cfg, "train.global_batch_stages", &t->global_batch_stages, last, warnings);
    warn_stages(cfg, "train.router_bias_speed_stages", &t->router_bias_speed_stages, last,
                warnings);
    warn_stages(cfg, "train.mtp_loss_weight_stages", &t->mtp_loss_weight_stages, last, warnings);
    warn_stages(cfg, "optimizer.lr_stages", &o->lr_stages, last, warnings);
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
