/*
 * hf_model.h - the tensors that a model of some configuration has in Hugging Face's files: those of
 * the parameter table, an expert each, the selection biases, and the copies of embedding and head
 * that each MTP module brings along. A checkpoint has the same under "model/", without the copies.
 */
#pragma once

#include "ckpt/manifest.h"
#include "config/config.h"

#include <stdbool.h>

enum hf_role {
    HF_WEIGHT,
    HF_BIAS, /* of the selection; F32 in every file we write */
    HF_EMBED_COPY,
    HF_HEAD_COPY
};
struct hf_tensor {
    char name[CKPT_NAME]; /* with "model/" in front, as in a checkpoint; see hf_name */
    enum hf_role role;
    int n_dims;
    int64_t dim[2], n;
};
struct hf_model {
    int n;
    struct hf_tensor *tensor; /* in the order of the layers */
};

#define HF_PREFIX "model/"
#define HF_EMBED "model/model.embed_tokens.weight"
#define HF_HEAD "model/lm_head.weight"

/* Free with hf_model_free. */
void hf_model_init(struct hf_model *hf, const struct config *cfg);
void hf_model_free(struct hf_model *hf);

static inline const char *hf_name(const struct hf_tensor *t)
{
    return t->name + sizeof HF_PREFIX - 1;
}

static inline bool hf_is_copy(const struct hf_tensor *t)
{
    return t->role == HF_EMBED_COPY || t->role == HF_HEAD_COPY;
}
