/*
 * rope.c - rotary tables and the softmax scale, plain or YaRN (Peng et al. 2023; constants as in
 * Hugging Face's yarn rope and DeepSeek's inference/model.py).
 */
#include "model/model.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

/* The pair index at which a wave makes `rotations` turns over the original context. */
static double correction_dim(const struct config_model *c, double rotations)
{
    const double context = c->rope_original_max_position_embeddings;
    return c->qk_rope_head_dim * log(context / (rotations * 2 * PI)) / (2 * log(c->rope_theta));
}

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : (x > hi ? hi : x);
}

/* Radians a position for pair i. YaRN divides slow waves by the factor, keeps fast ones and blends
 * in between. */
static double frequency(const struct config_model *c, int i)
{
    const double plain = pow(c->rope_theta, -2.0 * i / c->qk_rope_head_dim);
    if (c->rope_type != ROPE_YARN) return plain;
    /* Each end has one bound: beyond the other one no wave, or every wave, is divided. */
    const double low = fmax(floor(correction_dim(c, c->rope_beta_fast)), 0);
    double high = fmin(ceil(correction_dim(c, c->rope_beta_slow)), c->qk_rope_head_dim - 1);
    if (high == low) high += 0.001;
    const double ramp = clamp((i - low) / (high - low), 0, 1);
    return plain / c->rope_factor * ramp + plain * (1 - ramp);
}

static double mscale(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

void rope_fill_table(float *table, const struct config_model *c, int T)
{
    const int pairs = c->qk_rope_head_dim / 2;
    double amplitude = 1;
    if (c->rope_type == ROPE_YARN)
        amplitude =
            mscale(c->rope_factor, c->rope_mscale) / mscale(c->rope_factor, c->rope_mscale_all_dim);
    for (int i = 0; i < pairs; i++) {
        const double w = frequency(c, i);
        for (int t = 0; t < T; t++) {
            table[((int64_t)t * pairs + i) * 2] = (float)(amplitude * cos(t * w));
            table[((int64_t)t * pairs + i) * 2 + 1] = (float)(amplitude * sin(t * w));
        }
    }
}

double rope_softmax_scale(const struct config_model *c)
{
    const double plain = 1 / sqrt((double)(c->qk_nope_head_dim + c->qk_rope_head_dim));
    if (c->rope_type != ROPE_YARN || c->rope_mscale_all_dim == 0) return plain;
    const double m = mscale(c->rope_factor, c->rope_mscale_all_dim);
    return plain * m * m;
}
