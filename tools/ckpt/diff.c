/* diff.c - what differs between two checkpoints; see commands.h. */
#include "commands.h"

#include "config/setting.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIFFERENT = 1 }; /* the exit code of diff(1) */

struct pair {
    struct checkpoint c[2];
    float *buffer[2];
    int64_t n_differences;
};

static void differ_number(struct pair *p, const char *name, int64_t a, int64_t b)
{
    if (a == b) return;
    printf("state   %s: %" PRId64 ", %" PRId64 "\n", name, a, b);
    p->n_differences++;
}

static void differ_hash(struct pair *p, const char *name, uint64_t a, uint64_t b)
{
    if (a == b) return;
    printf("state   %s: %016" PRIx64 ", %016" PRIx64 "\n", name, a, b);
    p->n_differences++;
}

static void differ_loss(struct pair *p, const char *name, double a, double b)
{
    if (a == b || (isnan(a) && isnan(b))) return;
    printf("state   %s: %.9g, %.9g\n", name, a, b);
    p->n_differences++;
}

static void diff_state(struct pair *p)
{
    const struct manifest *m = &p->c[0].manifest, *o = &p->c[1].manifest;
    const struct ckpt_state *a = &m->state, *b = &o->state;
    if (strcmp(m->version, o->version)) {
        printf("state   version: %s, %s\n", m->version, o->version);
        p->n_differences++;
    }
    differ_number(p, "step", a->step, b->step);
    differ_number(p, "tokens", a->tokens, b->tokens);
    differ_number(p, "samples", a->samples, b->samples);
    differ_number(p, "skipped", a->skipped, b->skipped);
    differ_number(p, "skipped samples", a->passed, b->passed);
    differ_number(p, "rollbacks", a->rollbacks.n, b->rollbacks.n);
    differ_number(p, "skipped_in_row", a->skipped_in_row, b->skipped_in_row);
    differ_loss(p, "loss", a->loss, b->loss);
    differ_loss(p, "held-out loss", a->heldout_loss, b->heldout_loss);
    differ_number(p, "step of the best", a->best.step, b->best.step);
    differ_hash(p, "param_hash", a->param_hash, b->param_hash);
    differ_hash(p, "train data", a->train_fingerprint, b->train_fingerprint);
    differ_hash(p, "held-out data", a->heldout_fingerprint, b->heldout_fingerprint);
    differ_hash(p, "tokenizer", a->tokenizer_fingerprint, b->tokenizer_fingerprint);
    differ_number(p, "bos id of the data", a->bos_id, b->bos_id);
    differ_number(p, "eod id of the data", a->eod_id, b->eod_id);
    differ_number(p, "pad id of the data", a->pad_id, b->pad_id);
    differ_number(p, "ranks", a->ranks, b->ranks);
    differ_number(p, "dp", a->dp, b->dp);
    differ_number(p, "tp", a->tp, b->tp);
    differ_number(p, "ep", a->ep, b->ep);
}

/* The text has a setting in the same outermost section. */
static bool has_section(const char *text, const char *key)
{
    const size_t n = strcspn(key, ".") + 1;
    for (struct setting s = {.rest = text}; setting_next(&s);)
        if (!strncmp(s.key, key, n)) return true;
    return false;
}

/* What the other side does not have: the whole section, once, or the setting. */
static bool differ_missing(const char *other, const struct setting *s, const char *side,
                           char section[SETTING_NAME])
{
    const int n = (int)strcspn(s->key, ".");
    if (has_section(other, s->key)) {
        printf("config  %s: only in %s: %.*s\n", s->key, side, s->n_value, s->value);
        return true;
    }
    if (!strncmp(section, s->key, (size_t)n) && section[n] == '\0') return false;
    snprintf(section, SETTING_NAME, "%.*s", n, s->key);
    printf("config  %s: only in %s\n", section, side);
    return true;
}

static void diff_settings(struct pair *p)
{
    const char *text[2] = {p->c[0].manifest.config, p->c[1].manifest.config};
    for (int side = 0; side < 2; side++) {
        struct setting a = {.rest = text[side]}, b;
        char section[SETTING_NAME] = "";
        while (setting_next(&a)) {
            if (!setting_find(&b, text[!side], a.key)) {
                p->n_differences += differ_missing(text[!side], &a, side ? "B" : "A", section);
            } else if (side == 0 && !setting_equal(&a, &b)) {
                printf("config  %s: %.*s, %.*s\n", a.key, a.n_value, a.value, b.n_value, b.value);
                p->n_differences++;
            }
        }
    }
}

/* What two tensors of one shape differ in. */
struct difference {
    int64_t n, at; /* elements; the one with the largest difference */
    double largest;
    float a, b;
};

static void compare(struct difference *d, const float *a, const float *b, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!memcmp(&a[i], &b[i], sizeof *a)) continue;
        const double by = fabs((double)a[i] - b[i]);
        const double size = isnan(by) ? INFINITY : by;
        if (d->n++ && size <= d->largest) continue;
        *d = (struct difference){d->n, first + i, size, a[i], b[i]};
    }
}

static int diff_values(struct pair *p, const struct ckpt_tensor *a, const struct ckpt_tensor *b,
                       struct fault *fault)
{
    struct difference d = {0};
    for (int64_t at = 0; at < a->n; at += PIECE) {
        const int64_t n = a->n - at < PIECE ? a->n - at : PIECE;
        if (checkpoint_try_read_f32(&p->c[0], a, at, n, p->buffer[0], fault) ||
            checkpoint_try_read_f32(&p->c[1], b, at, n, p->buffer[1], fault))
            return -1;
        compare(&d, p->buffer[0], p->buffer[1], at, n);
    }
    if (!d.n) return 0;
    printf("tensor  %s: %" PRId64 " of %" PRId64 " elements, most in element %" PRId64
           ": %.9g, %.9g (%.3g)\n",
           a->name, d.n, a->n, d.at, (double)d.a, (double)d.b, d.largest);
    p->n_differences++;
    return 0;
}

static int diff_tensor(struct pair *p, const struct ckpt_tensor *a, const struct ckpt_tensor *b,
                       struct fault *fault)
{
    char shape[2][SHAPE_BYTES];
    if (a->dtype != b->dtype) {
        printf("tensor  %s: %s, %s\n", a->name, dtype_name(a->dtype), dtype_name(b->dtype));
        p->n_differences++;
    }
    if (a->n_dims == b->n_dims && a->dim[0] == b->dim[0] && a->n == b->n)
        return diff_values(p, a, b, fault);
    printf("tensor  %s: %s, %s\n", a->name, shape_text(shape[0], a->n_dims, a->dim),
           shape_text(shape[1], b->n_dims, b->dim));
    p->n_differences++;
    return 0;
}

static int diff_tensors(struct pair *p, struct fault *fault)
{
    for (int side = 0; side < 2; side++) {
        const struct manifest *m = &p->c[side].manifest;
        const struct ckpt_tensor *other = NULL;
        for (int i = 0; i < m->n_tensors; i++) {
            const struct ckpt_tensor *t = &m->tensor[i];
            const struct ckpt_tensor *found = checkpoint_find(&p->c[!side], other, t->name);
            if (!found) {
                printf("tensor  %s: only in %s\n", t->name, side ? "B" : "A");
                p->n_differences++;
                continue;
            }
            other = found;
            if (side == 0 && diff_tensor(p, t, found, fault)) return -1;
        }
    }
    return 0;
}

int cmd_diff(const struct options *o)
{
    struct pair p = {0};
    struct fault fault;
    int bad = 0;
    for (int i = 0; i < 2; i++) {
        p.buffer[i] = malloc(PIECE * sizeof *p.buffer[i]);
        CHECK(p.buffer[i], "no memory for a piece of a tensor");
    }
    for (int i = 0; i < 2 && !bad; i++) bad = checkpoint_try_open(&p.c[i], o->arg[i], &fault);
    if (!bad) {
        diff_state(&p);
        diff_settings(&p);
        bad = diff_tensors(&p, &fault);
    }
    if (!bad && p.n_differences == 0) printf("no difference\n");
    for (int i = 0; i < 2; i++) {
        checkpoint_close(&p.c[i]);
        free(p.buffer[i]);
    }
    return bad ? report(&fault) : p.n_differences ? DIFFERENT : CODE_DONE;
}
