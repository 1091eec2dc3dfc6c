/*
 * manifest.h - what a checkpoint holds, as manifest.json in its directory tells it: the state of
 * the run, its files, its tensors with global shapes and where each lies, and the boxes in which
 * ranks wrote them, each with a checksum. docs/checkpoint.md describes the files byte for byte.
 *
 * A tensor is a contiguous, row-major, little-endian range of one HDF5 file. Its name is that of
 * the dataset: "model/" and the name that Hugging Face gives the weight (the selection biases are
 * "model/...mlp.gate.e_score_correction_bias"), "exp_avg/..." and "exp_avg_sq/..." the moments of
 * it. Weights are F32 masters; the experts of a layer are one tensor each, by global number.
 *
 * Functions named *_try_* return 0, or -1 with a fault whose text names the file, the place, found
 * and expected. Nothing here is collective, and nothing needs MPI.
 */
#pragma once

#include "base/dtype.h"
#include "base/err.h"
#include "base/range.h"

#include <stdbool.h>
#include <stdint.h>

enum { CKPT_NAME = 128, CKPT_FILE_NAME = 32, CKPT_TEXT = 64, CKPT_SOURCES = 16 };
#define CKPT_MANIFEST "manifest.json"

struct ckpt_tensor {
    char name[CKPT_NAME];
    enum dtype dtype; /* F32 or BF16 */
    int n_dims;
    int64_t dim[2]; /* global shape */
    int64_t n;      /* elements */
    int file;       /* index into manifest.file */
    int64_t offset; /* bytes from the beginning of the file */
    int first_box, n_boxes;
};

/* `count` elements of a tensor in runs: element j of the box is the tensor's element
 *     base + (first + j) / run * stride + (first + j) % run,   0 <= first < run.
 * A contiguous box is one run. The boxes of a tensor cover each of its elements once. */
struct ckpt_box {
    int tensor;
    int64_t base, first, run, stride, count;
    uint64_t hash; /* XXH3 of its elements' bytes in the order of j */
};

struct ckpt_file {
    char name[CKPT_FILE_NAME];
    int64_t bytes;
    uint64_t hash; /* XXH3 of all bytes that belong to no tensor, in order */
};

/* Everything of the run that is no tensor and no setting. What is random is a function of the seed
 * and of these. */
/* A held-out loss that was the lowest of the run: after that step, mean over so many tokens. */
struct ckpt_best {
    int64_t step, tokens; /* tokens 0: none */
    double loss;
};

/* What a spike is measured by: losses and gradient norms of the last steps, oldest first. */
enum { CKPT_RECENT = 1024 };
struct ckpt_recent {
    int n;
    double loss[CKPT_RECENT], grad_norm[CKPT_RECENT];
};

/* All zero in checkpoints without them. */
struct ckpt_rollbacks {
    int n;
    struct ranges samples; /* that they passed over, ahead of the checkpoint as well */
};

struct ckpt_state {
    int64_t step, tokens, samples, passed, skipped; /* see struct progress */
    int skipped_in_row;
    double loss;           /* of the step; NaN: none */
    double heldout_loss;   /* after the step; NaN: none */
    struct ckpt_best best; /* with checkpoint.keep_best: of those saved up to this step */
    uint64_t param_hash;
    uint64_t train_fingerprint, heldout_fingerprint, tokenizer_fingerprint; /* 0: none */
    int bos_id, eod_id, pad_id; /* of the training data; -1: none, or the shards do not tell */
    int ranks, dp, tp, ep;
    /* Of each source of the training data: its samples an epoch, and how many of them had come
     * before sample number mixed_from, where the present mixture began (struct mix_start). */
    int n_sources; /* 0: not known (format 2, or no data) */
    struct ckpt_source {
        int64_t samples, taken;
    } source[CKPT_SOURCES];
    int64_t mixed_from;
    struct ckpt_rollbacks rollbacks;
    struct ckpt_recent recent;
};

struct manifest {
    char version[CKPT_TEXT]; /* of the program that wrote it */
    struct ckpt_state state;
    char *config; /* every key and value, the YAML of `dsv3 check`; lies in config.yaml as well */
    int n_files, n_tensors, n_boxes;
    struct ckpt_file *file;
    struct ckpt_tensor *tensor;
    struct ckpt_box *box;               /* those of a tensor side by side, in its order */
    const struct ckpt_tensor **by_name; /* sorted; NULL in a manifest that was not read */
};

/* Reads and checks DIR/manifest.json: its own checksum, every range inside its file, every box
 * inside its tensor, every element of every tensor in one box; and that the files are there, of
 * the right sizes. Free with manifest_free, also after a fault. */
int manifest_try_read(struct manifest *manifest, const char *dir, struct fault *fault);
void manifest_free(struct manifest *manifest);

/* The last of these: the files are there, of the right sizes. */
int manifest_try_check_files(const struct manifest *manifest, const char *dir, struct fault *fault);

/* The text of manifest.json, NUL-terminated, to be freed with free(), and back. where: the file,
 * for messages. */
char *manifest_to_text(const struct manifest *manifest);
int manifest_try_parse(struct manifest *manifest, const char *text, const char *where,
                       struct fault *fault);

/* The tensors of a file in the order of their bytes, and then NULL; in new memory (free with
 * free()). */
const struct ckpt_tensor **ckpt_by_offset(const struct ckpt_tensor *tensor, int n, int file);

/* The tensor of that name, or NULL. */
const struct ckpt_tensor *manifest_find(const struct manifest *manifest, const char *name);
