/* metrics_experts.c - see metrics_experts.h, docs/metrics.md. */
#include "train/metrics_experts.h"

#include "base/err.h"

#include <math.h>

static void set(json_t *object, const char *key, json_t *value)
{
    CHECK(json_object_set_new(object, key, value) == 0, "no memory for metric %s", key);
}

static int unused(const int64_t *count, int E)
{
    int n = 0;
    for (int e = 0; e < E; e++) n += count[e] == 0;
    return n;
}

/* Of the shares of the experts, divided by that of equal ones: 1 is even, 0 is one expert alone. */
static double entropy(const int64_t *count, int E)
{
    double sum = 0, bits = 0;
    for (int e = 0; e < E; e++) sum += (double)count[e];
    for (int e = 0; e < E; e++)
        if (count[e] > 0) bits -= (double)count[e] / sum * log((double)count[e] / sum);
    return E > 1 && sum > 0 ? bits / log(E) : 1;
}

static double extreme(const float *x, int n, double sign)
{
    double most = sign * (double)x[0];
    for (int i = 1; i < n; i++) most = fmax(most, sign * (double)x[i]);
    return sign * most;
}

static json_t *count_rows(const int64_t *count, int rows, int cols)
{
    json_t *all = json_array();
    for (int r = 0; r < rows; r++) {
        json_t *row = json_array();
        for (int c = 0; c < cols; c++)
            json_array_append_new(row, json_integer(count[(int64_t)r * cols + c]));
        json_array_append_new(all, row);
    }
    return all;
}

void metrics_set_experts(json_t *object, const struct config *cfg, const struct step_report *r)
{
    const int E = cfg->model.n_routed_experts;
    json_t *load = json_array(), *idle = json_array(), *even = json_array(), *low = json_array(),
           *high = json_array();
    for (int l = 0; l < r->n_moe_layers; l++) {
        const int64_t *count = r->expert_count + (int64_t)l * E;
        const float *bias = r->bias + (int64_t)l * E;
        json_array_append_new(load, json_real(r->expert_load[l]));
        json_array_append_new(idle, json_integer(unused(count, E)));
        json_array_append_new(even, json_real(entropy(count, E)));
        json_array_append_new(low, json_real(extreme(bias, E, -1)));
        json_array_append_new(high, json_real(extreme(bias, E, 1)));
    }
    set(object, "expert_load", load);
    set(object, "expert_unused", idle);
    set(object, "expert_entropy", even);
    set(object, "expert_bias_min", low);
    set(object, "expert_bias_max", high);
    if (cfg->run.expert_counts || cfg->debug.dump_step == r->step)
        set(object, "expert_count", count_rows(r->expert_count, r->n_moe_layers, E));
}
