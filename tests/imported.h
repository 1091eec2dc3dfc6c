/*
 * imported.h - the weights of a directory of tests/golden/hf, as dsv3-ckpt imports them, in a model
 * of any configuration that they fit.
 */
#pragma once

#include "ckpt/store.h"
#include "tests/golden_model.h"

struct imported {
    char dir[CKPT_PATH];
    struct manifest manifest;
    struct ckpt_reader reader;
    int32_t
        token[4 * 25]; /* of tokens.u16: [4, 25], each sequence begins with the last one's end */
};

/* golden: its name. Runs dsv3-ckpt. Free with imported_free. */
void imported_init(struct imported *w, const char *golden);
void imported_free(struct imported *w);

/* Fills the model's weights and selection biases. False: one is not there, or of another size. */
bool imported_fill(struct imported *w, struct golden_model *gm);
