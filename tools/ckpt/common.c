/* common.c - what the commands share; see commands.h. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int report(const struct fault *fault)
{
    fflush(stdout);
    fprintf(stderr, "dsv3-ckpt: %s\n", fault->why);
    return fault->code;
}

int report_all(const struct err_list *errs, enum exit_code code)
{
    fflush(stdout);
    for (const char *line = errs->text; line && *line;) {
        const size_t n = strcspn(line, "\n");
        fprintf(stderr, "dsv3-ckpt: %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    return code;
}

int checkpoint_try_open(struct checkpoint *c, const char *dir, struct fault *fault)
{
    *c = (struct checkpoint){0};
    if (manifest_try_read(&c->manifest, store_resolve(c->dir, dir), fault)) return -1;
    ckpt_reader_init(&c->reader, &c->manifest, c->dir);
    return 0;
}

void checkpoint_close(struct checkpoint *c)
{
    ckpt_reader_free(&c->reader);
    manifest_free(&c->manifest);
}

const struct ckpt_tensor *checkpoint_find(const struct checkpoint *c,
                                          const struct ckpt_tensor *before, const char *name)
{
    const struct manifest *m = &c->manifest;
    const struct ckpt_tensor *next = before ? before + 1 : m->tensor;
    if (next < m->tensor + m->n_tensors && !strcmp(next->name, name)) return next;
    return manifest_find(m, name);
}

int checkpoint_try_read_f32(struct checkpoint *c, const struct ckpt_tensor *t, int64_t first,
                            int64_t n, float *to, struct fault *fault)
{
    if (t->dtype == DTYPE_F32) return ckpt_try_read(&c->reader, t, first, n, to, fault);
    /* The narrow values lie at the end of the room for the wide ones. */
    const char *narrow = (char *)to + n * 2;
    if (ckpt_try_read(&c->reader, t, first, n, (void *)narrow, fault)) return -1;
    for (int64_t i = 0; i < n; i++) {
        bf16 x;
        memcpy(&x, narrow + 2 * i, sizeof x);
        to[i] = bf16_to_f32(x);
    }
    return 0;
}

const char *shape_text(char text[SHAPE_BYTES], int n_dims, const int64_t *dim)
{
    int n = snprintf(text, SHAPE_BYTES, "[");
    for (int d = 0; d < n_dims; d++)
        n += snprintf(text + n, (size_t)(SHAPE_BYTES - n), "%s%" PRId64, d ? ", " : "", dim[d]);
    snprintf(text + n, (size_t)(SHAPE_BYTES - n), "]");
    return text;
}
