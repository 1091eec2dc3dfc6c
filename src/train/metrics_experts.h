/* metrics_experts.h - what a step's line of metrics.jsonl says about experts, layer by layer. */
#pragma once

#include "train/metrics.h"

#include <jansson.h>

/* Adds expert_load, expert_unused, expert_entropy, expert_bias_min, expert_bias_max, and with
 * run.expert_counts or in debug.dump_step expert_count. */
void metrics_set_experts(json_t *object, const struct config *cfg, const struct step_report *r);
