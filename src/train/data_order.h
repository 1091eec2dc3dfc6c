/*
 * data_order.h - the order of the data in a run that resumes: the checkpoint's goes on, each source
 * from its own count, or the run is refused; docs/checkpoint.md has the table. What config_compare
 * says of single keys (run.seed, data.shuffle, ...) is not repeated here.
 */
#pragma once

#include "ckpt/manifest.h"
#include "train/run.h"

/* Differences of data.train, each a line: in refused when what has been read cannot be told from
 * what has not, in taken otherwise. Not collective. */
void data_order_check(const struct run *run, const struct manifest *m, struct err_list *refused,
                      struct err_list *taken);

/* The dataset's mixture and run->progress, which has the numbers of the checkpoint, go on from
 * where they were, also with other weights, further sources, or sequences of another length, of
 * which rank 0 says what follows. True: so that the samples ahead have other numbers now. */
bool data_order_resume(struct run *run, const struct manifest *m);
