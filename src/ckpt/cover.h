/*
 * cover.h - whether the boxes of a tensor hold each of its elements once: boxes that overlap leave
 * others out, and what is there instead is nobody's.
 */
#pragma once

#include "ckpt/manifest.h"

/* n boxes, each inside the tensor, of t->n elements together. A box of several runs has the runs of
 * neighbouring rows: its stride is a row of the tensor, its runs end in the row in which they
 * begin. Time n log n, whatever the shapes. -1: they do not cover it so, or there is no memory;
 * where: the file, for the message. */
int cover_try_check(const struct ckpt_tensor *t, const struct ckpt_box *box, int n,
                    const char *where, struct fault *fault);
