/* import.h - the two halves of `dsv3-ckpt import`: which tensor of the files is which of the model
 * (match.c), and their values as a checkpoint (import.c). */
#pragma once

#include "hf_config.h"
#include "hf_model.h"
#include "safetensors.h"

/* Where the values of a tensor are. */
struct import_source {
    const struct st_tensor *weight; /* NULL: a copy that the files do not have */
    const struct st_tensor *scale;  /* of FP8 blocks; NULL: none */
};

struct import {
    const char *dir;
    struct safetensors st;
    struct hf_settings set;
    struct config cfg;
    struct hf_model hf;
    struct import_source *source; /* [hf.n] */
    float *scale;                 /* room for the scales of a piece */
    int64_t n_scale;
};

/* Finds the source of every tensor. Everything that is missing, of another shape or type, or too
 * much is listed. Returns 0, or -1 with messages in errs. n_left_out: tensors of MTP modules that
 * the model does not have. */
int import_try_match(struct import *im, int64_t *n_left_out, struct err_list *errs);

/* n elements of tensor i from element `first` as F32: what the files hold, exactly; FP8 times the
 * scale of its block, rounded to F32. */
int import_try_read(struct import *im, int i, int64_t first, int64_t n, float *to,
                    struct fault *fault);

/* Frees everything but the path. */
void import_free(struct import *im);
