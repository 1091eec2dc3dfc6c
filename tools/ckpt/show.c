/* show.c - what is in a checkpoint; see commands.h. */
#include "commands.h"

#include "base/text.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_state(const struct manifest *m)
{
    const struct ckpt_state *s = &m->state;
    char tokens[TEXT_NUMBER], samples[TEXT_NUMBER];
    printf("written by dsv3 %s on %d rank%s: dp %d x tp %d, ep %d\n", m->version, s->ranks,
           text_s(s->ranks), s->dp, s->tp, s->ep);
    printf("step %" PRId64 ", %s tokens, %s samples, %" PRId64 " skipped", s->step,
           text_grouped(tokens, s->tokens), text_grouped(samples, s->samples), s->skipped);
    if (s->passed > 0)
        printf(" (and %" PRId64 " samples, %d rollback%s)", s->passed, s->rollbacks.n,
               text_s(s->rollbacks.n));
    if (isfinite(s->loss)) printf(", loss %.9g", s->loss);
    if (isfinite(s->heldout_loss)) printf(", held-out loss %.9g", s->heldout_loss);
    if (s->best.tokens > 0)
        printf("\nbest held-out loss up to here: %.9g after step %" PRId64, s->best.loss,
               s->best.step);
    printf("\nparam_hash %016" PRIx64 ", data %016" PRIx64 ", held out %016" PRIx64
           ", tokenizer %016" PRIx64 "\n",
           s->param_hash, s->train_fingerprint, s->heldout_fingerprint, s->tokenizer_fingerprint);
    for (int i = 0; i < m->n_files; i++)
        printf("%s: %s bytes\n", m->file[i].name, text_grouped(tokens, m->file[i].bytes));
}

static bool is_shown(const char *name, const char *pattern)
{
    if (!pattern) return true;
    return strpbrk(pattern, "*?[") ? !fnmatch(pattern, name, 0) : strstr(name, pattern) != NULL;
}

/* In F64. */
static int try_norm(struct checkpoint *c, const struct ckpt_tensor *t, float *buffer, double *norm,
                    struct fault *fault)
{
    double sum = 0;
    for (int64_t at = 0; at < t->n; at += PIECE) {
        const int64_t n = t->n - at < PIECE ? t->n - at : PIECE;
        if (checkpoint_try_read_f32(c, t, at, n, buffer, fault)) return -1;
        for (int64_t i = 0; i < n; i++) sum += (double)buffer[i] * buffer[i];
    }
    *norm = sqrt(sum);
    return 0;
}

static int try_show(struct checkpoint *c, const char *pattern, float *buffer, struct fault *fault)
{
    const struct manifest *m = &c->manifest;
    char shape[SHAPE_BYTES], count[TEXT_NUMBER];
    int64_t n_elements = 0;
    int n_shown = 0;
    for (int i = 0; i < m->n_tensors; i++) {
        const struct ckpt_tensor *t = &m->tensor[i];
        double norm;
        if (!is_shown(t->name, pattern)) continue;
        if (try_norm(c, t, buffer, &norm, fault)) return -1;
        printf("%-72s %-4s %-16s |x| %.9g\n", t->name, dtype_name(t->dtype),
               shape_text(shape, t->n_dims, t->dim), norm);
        n_elements += t->n;
        n_shown++;
    }
    printf("%d of %d tensors, %s elements\n", n_shown, m->n_tensors,
           text_grouped(count, n_elements));
    return 0;
}

int cmd_show(const struct options *o)
{
    struct checkpoint c;
    struct fault fault;
    float *buffer = malloc(PIECE * sizeof *buffer);
    CHECK(buffer, "no memory for a piece of a tensor");
    int bad = checkpoint_try_open(&c, o->arg[0], &fault);
    if (!bad) {
        print_state(&c.manifest);
        bad = try_show(&c, o->n_args > 1 ? o->arg[1] : NULL, buffer, &fault);
    }
    checkpoint_close(&c);
    free(buffer);
    return bad ? report(&fault) : CODE_DONE;
}
