/*
 * count.h - how large a model is and how much work a token takes: from the parameter table and
 * the formulas of the projects people compare with.
 */
#pragma once

#include "config/config.h"
#include "model/param.h"

struct model_counts {
    int64_t part[N_PARTS]; /* main model, without MTP modules */
    int64_t params_total;  /* main model, both embeddings */
    int64_t params_active; /* for one token, both embeddings */
    int64_t params_active_no_input_embedding;
    int64_t params_active_no_embeddings;
    int64_t router_bias; /* selection-bias values of the main model; not parameters */
    int64_t mtp_params;  /* all MTP modules, without the shared embedding and head */
    int64_t mtp_router_bias;
    int64_t released; /* values in a released checkpoint: all of these, and each MTP module's own
                         copy of embedding and head */
    /* FLOP a token, forward + backward, at data.sequence_length, with the MTP modules. */
    int sequence_length;
    double flop_exact;      /* causal attention counted as (T + 1) / 2 keys a query */
    double flop_megatron;   /* Megatron-Core's formula */
    double flop_torchtitan; /* torchtitan's formula: attention not halved */
};

void model_count(struct model_counts *counts, const struct config *cfg);

/* For people, and as one JSON object (keys in README: params_total, params_active, ...,
 * flop_per_token {exact, megatron, torchtitan}). */
void model_counts_print(const struct model_counts *counts, FILE *out);
void model_counts_print_json(const struct model_counts *counts, FILE *out);
