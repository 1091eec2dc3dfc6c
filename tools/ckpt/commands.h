/*
 * commands.h - the parts of dsv3-ckpt: what is asked of it (options.c), looking at checkpoints
 * (list.c, show.c, diff.c), Hugging Face's files (export.c, import.c), and what they share.
 */
#pragma once

#include "ckpt/store.h"

#include <stdbool.h>

struct options {
    const char *command;
    char **arg;
    int n_args;
    int keep_last;                              /* -1: not given */
    int64_t keep_every, shard_bytes, max_vocab; /* max_vocab 0: all */
    bool is_bf16, dry_run, help, version;
    const char *tokenizer, *model; /* files, or NULL */
};

/* -1 after an error message. */
int options_parse(struct options *o, int argc, char **argv);

/* Prints "dsv3-ckpt: ...; see dsv3-ckpt --help"; returns CODE_USAGE. */
int usage_error(const char *fmt, const char *what);

/* Each returns the exit code. */
int cmd_list(const struct options *o);
int cmd_verify(const struct options *o);
int cmd_prune(const struct options *o);
int cmd_show(const struct options *o);
int cmd_diff(const struct options *o);
int cmd_export(const struct options *o);
int cmd_import(const struct options *o);
int cmd_model(const struct options *o);

/* Prints "dsv3-ckpt: WHY" and returns the fault's code. */
int report(const struct fault *fault);
/* All of them, a line each; returns code. */
int report_all(const struct err_list *errs, enum exit_code code);

/* A checkpoint for reading; a directory of checkpoints stands for its newest whole one. Free with
 * checkpoint_close, also after a fault. */
struct checkpoint {
    char dir[CKPT_PATH];
    struct manifest manifest;
    struct ckpt_reader reader;
};
int checkpoint_try_open(struct checkpoint *c, const char *dir, struct fault *fault);
void checkpoint_close(struct checkpoint *c);

/* The tensor of that name, or NULL; quick when it follows `before` (NULL: none). */
const struct ckpt_tensor *checkpoint_find(const struct checkpoint *c,
                                          const struct ckpt_tensor *before, const char *name);

/* Tensors pass through memory in pieces of so many elements at most. */
enum { PIECE = 1 << 20 };

/* n elements from element `first` as F32. */
int checkpoint_try_read_f32(struct checkpoint *c, const struct ckpt_tensor *t, int64_t first,
                            int64_t n, float *to, struct fault *fault);

/* "[7168, 2048]". Returns text. */
enum { SHAPE_BYTES = 96 };
const char *shape_text(char text[SHAPE_BYTES], int n_dims, const int64_t *dim);
