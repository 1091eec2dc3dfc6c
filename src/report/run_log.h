/*
 * run_log.h - metrics.jsonl of a run, read back: its numbers as series over steps. docs/metrics.md
 * has the keys. What a version does not know is passed over.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

/* Points in the order of the file; y NaN where the run had no finite number. */
struct series {
    int64_t n, room;
    double *x, *y;
};

struct run_log {
    const char *name; /* as the run was named; borrowed */
    struct series loss, mtp_loss, heldout, grad_norm, lr, tok_s, bias_low, bias_high;
    struct series stall;    /* seconds that the steps waited for a checkpoint */
    struct series skipped;  /* steps that changed no weight: x */
    struct series restart;  /* x: the steps before a start that resumed */
    struct series rollback; /* x: the step to which the run returned */
    int n_layers;           /* MoE layers */
    struct series *load;    /* [n_layers] busiest expert / mean */
    char version[64], mesh[96];
    double params, params_active, tokens; /* of the last identity line, of the last step */
};

/* -1 and a fault with file and line: no such file, or a line that is not a JSON object. The last
 * line may be cut off: the run may be writing it. Free in both cases. */
int run_log_try_read(struct run_log *log, const char *run_dir, struct fault *fault);
void run_log_free(struct run_log *log);
