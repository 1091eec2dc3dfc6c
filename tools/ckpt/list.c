/* list.c - the checkpoints of a directory: list, verify, prune; see commands.h. */
#include "commands.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t total_bytes(const struct manifest *m)
{
    int64_t sum = 0;
    for (int i = 0; i < m->n_files; i++) sum += m->file[i].bytes;
    return sum;
}

/* The steps in ROOT, of which there must be some: how many, or -1. */
static int try_steps(const char *root, int64_t **steps, struct fault *fault)
{
    const int n = store_try_list(root, steps, fault);
    if (n != 0) return n;
    return fault_set(fault, CODE_NO_INPUT, "%s: found no checkpoint (step-NNNNNNNN)", root);
}

/* The step of the best held-out loss, as the newest readable checkpoint knows it; -1: none. */
static int64_t best_step(const char *root, const int64_t *steps, int n)
{
    int64_t best = -1;
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        char path[CKPT_PATH];
        struct manifest m;
        struct fault fault;
        found = !manifest_try_read(&m, store_path(path, root, steps[i]), &fault);
        if (found && m.state.best.tokens > 0) best = m.state.best.step;
        manifest_free(&m);
    }
    return best;
}

static const char *loss_text(char text[32], double loss)
{
    snprintf(text, 32, isfinite(loss) ? "%.5f" : "-", loss);
    return text;
}

static void print_row(const char *root, int64_t step, bool is_best)
{
    struct manifest m;
    struct fault fault;
    char path[CKPT_PATH], tokens[TEXT_NUMBER], loss[2][32];
    if (manifest_try_read(&m, store_path(path, root, step), &fault))
        printf("%9" PRId64 "  %18s  %9s  %9s  %12s  no: %s\n", step, "-", "-", "-", "-", fault.why);
    else
        printf("%9" PRId64 "  %18s  %9s  %9s  %9.1f MB  yes%s\n", step,
               text_grouped(tokens, m.state.tokens), loss_text(loss[0], m.state.loss),
               loss_text(loss[1], m.state.heldout_loss), (double)total_bytes(&m) * 1e-6,
               is_best ? ", best" : "");
    manifest_free(&m);
}

int cmd_list(const struct options *o)
{
    char root[CKPT_PATH];
    struct fault fault;
    int64_t *steps;
    const int n = try_steps(store_resolve_root(root, o->arg[0]), &steps, &fault);
    if (n < 0) return report(&fault);
    const int64_t best = best_step(root, steps, n);
    printf("%9s  %18s  %9s  %9s  %12s  valid\n", "step", "tokens", "loss", "held-out", "size");
    for (int i = n - 1; i >= 0; i--) print_row(root, steps[i], steps[i] == best);
    printf("valid: manifest, names and sizes; `dsv3-ckpt verify` reads and checks everything\n");
    free(steps);
    return CODE_DONE;
}

/* Reports every fault; returns the code of the first. */
static int verify_parts(struct checkpoint *c)
{
    const struct manifest *m = &c->manifest;
    struct fault fault;
    int code = CODE_DONE;
    for (int i = -1; i < m->n_files + m->n_boxes; i++) {
        const int bad = i < 0            ? ckpt_try_verify_config(&c->reader, &fault)
                        : i < m->n_files ? ckpt_try_verify_file(&c->reader, i, &fault)
                                         : ckpt_try_verify_box(&c->reader, i - m->n_files, &fault);
        if (bad && report(&fault) && code == CODE_DONE) code = fault.code;
    }
    return code;
}

static int verify(const char *dir)
{
    struct checkpoint c;
    struct fault fault;
    int code;
    if (checkpoint_try_open(&c, dir, &fault))
        code = report(&fault);
    else
        code = verify_parts(&c);
    if (code == CODE_DONE)
        printf("%s: good: %d tensors in %d boxes and %d file%s, %.1f MB\n", dir,
               c.manifest.n_tensors, c.manifest.n_boxes, c.manifest.n_files,
               text_s(c.manifest.n_files), (double)total_bytes(&c.manifest) * 1e-6);
    checkpoint_close(&c);
    return code;
}

int cmd_verify(const struct options *o)
{
    char path[CKPT_PATH], root[CKPT_PATH];
    struct fault fault;
    int64_t *steps;
    int code = CODE_DONE;
    path_print(path, "%s/" CKPT_MANIFEST, o->arg[0]);
    if (!access(path, F_OK)) return verify(o->arg[0]);
    const int n = try_steps(store_resolve_root(root, o->arg[0]), &steps, &fault);
    if (n < 0) return report(&fault);
    for (int i = n - 1; i >= 0; i--) {
        const int bad = verify(store_path(path, root, steps[i]));
        if (code == CODE_DONE) code = bad;
    }
    free(steps);
    return code;
}

/* The newest that stay must be good, to the last byte: what is removed may be what they would be
 * replaced by. */
static int try_check_kept(const char *root, const int64_t *steps, int n, struct fault *fault)
{
    char path[CKPT_PATH];
    int bad = 0;
    for (int i = 0; i < n && !bad; i++) {
        struct checkpoint c;
        struct fault found;
        if (checkpoint_try_open(&c, store_path(path, root, steps[i]), &found) ||
            ckpt_try_verify(&c.reader, &found))
            bad = fault_set(fault, found.code,
                            "nothing removed, since one to keep is not whole: %s", found.why);
        else if (c.manifest.state.skipped_in_row > 0)
            bad = fault_set(fault, CODE_DATA,
                            "nothing removed, since one to keep was saved while steps were being "
                            "skipped (%d in a row), and an older one may be better: %s",
                            c.manifest.state.skipped_in_row, path);
        checkpoint_close(&c);
    }
    return bad;
}

int cmd_prune(const struct options *o)
{
    char root[CKPT_PATH], path[CKPT_PATH];
    struct fault fault;
    int64_t *steps;
    const int n = try_steps(store_resolve_root(root, o->arg[0]), &steps, &fault);
    if (n < 0) return report(&fault);
    const int n_kept = n < o->keep_last ? n : o->keep_last;
    const struct store_keep keep = {.last = o->keep_last,
                                    .every = o->keep_every,
                                    .best = best_step(root, steps, n),
                                    .written = -1};
    int bad = n_kept == n ? 0 : try_check_kept(root, steps, n_kept, &fault);
    for (int i = n - 1; i >= 0 && !bad; i--)
        printf("%s: %s\n", store_path(path, root, steps[i]),
               steps[i] == keep.best            ? "kept, best held-out loss"
               : !store_is_old(steps, i, &keep) ? "kept"
               : o->dry_run                     ? "would be removed"
                                                : "removed");
    if (!bad && !o->dry_run) bad = store_try_prune(root, &keep, &fault);
    free(steps);
    return bad ? report(&fault) : CODE_DONE;
}
