/*
 * sample.h - tokens from a model, one after the other: greedy, or drawn by temperature and top-p.
 * What is drawn is a function of the key and the token's number, so it is the same on any mesh but
 * for rounding of the logits, and the same again when a run is resumed.
 */
#pragma once

#include "model/model.h"

struct sampling {
    double temperature; /* 0: the most likely token, of equals the lowest id */
    double top_p;       /* draw from the fewest tokens that have this share of the probability */
    uint64_t key;       /* of the generator */
    int max_tokens;
    int n_ids;   /* only ids below are chosen: a vocabulary may be padded */
    int32_t end; /* the id after which nothing follows; -1: none */
};

struct sampler;

/* For a model with a cache; takes the host memory that sampling needs. */
struct sampler *sampler_init(struct model *m);
void sampler_free(struct sampler *s);

/* The next token by logits [V]; number: which token it is, from 0. Logits that are not finite end
 * the run with CODE_INTERNAL. Not collective. */
int32_t sampler_choose(struct sampler *s, const float *logits, const struct sampling *how,
                       int64_t number);

/* Continues a sequence of n >= 1 tokens, as far as the cache has room: every new token, the end
 * included, is handed to `emit` on rank 0. Returns how many. Collective. */
int sampler_run(struct sampler *s, const int32_t *prompt, int n, const struct sampling *how,
                void (*emit)(void *to, int32_t id), void *to);
