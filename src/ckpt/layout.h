/*
 * layout.h - HDF5 as a layout: which file holds which tensor where. The files are made once,
 * without contents, with contiguous datasets of global shape (allocated early, no fill, aligned),
 * and only the bytes around the tensors are kept: writing a checkpoint is writing these and the
 * tensors at their offsets with pwrite, from any process or thread, without HDF5 and its locks.
 */
#pragma once

#include "ckpt/manifest.h"

enum { CKPT_ALIGN = 4096 }; /* a tensor of as many bytes starts on such a boundary */

struct layout_part {
    int64_t offset, bytes;
    const char *data;
};

struct layout_file {
    struct ckpt_file file;
    int n_parts;
    struct layout_part *part; /* the bytes that are not zero and belong to no tensor */
};

struct layout {
    int n_files;
    struct layout_file *file;
};

/* Gives every tensor its file and offset (n, name, dtype and shape are given), in order, a new file
 * beginning where one would grow beyond file_bytes, and makes the files' headers. scratch: a path
 * that nothing lies at; a file as large as the others, but sparse, lies there for a moment. Fatal
 * when HDF5 fails. */
void layout_make(struct layout *layout, const char *scratch, struct ckpt_tensor *tensor,
                 int n_tensors, int64_t file_bytes);
void layout_free(struct layout *layout);

/* Size and headers of one file, which is open and lies at path; not synced. Other processes may
 * write tensors into it before, meanwhile, and afterwards. */
int layout_try_write(const struct layout_file *file, int fd, const char *path, struct fault *fault);
