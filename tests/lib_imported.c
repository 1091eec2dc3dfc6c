/* lib_imported.c - see imported.h. */
#include "tests/imported.h"

#include "base/err.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/golden/hf/"
enum { T = 24, B = 4 };

void imported_init(struct imported *w, const char *golden)
{
    char command[2000], path[200];
    struct fault fault;
    uint16_t id[B * T + 1];
    snprintf(command, sizeof command,
             "\"$DSV3_BUILD/dsv3-ckpt\" import " GOLDEN "%s %s/%s >/dev/null", golden,
             test_tmpdir(), golden);
    CHECK(system(command) == 0, "%s", command);
    snprintf(w->dir, sizeof w->dir, "%s/%s/step-00000000", test_tmpdir(), golden);
    CHECK(!manifest_try_read(&w->manifest, w->dir, &fault), "%s", fault.why);
    ckpt_reader_init(&w->reader, &w->manifest, w->dir);
    snprintf(path, sizeof path, GOLDEN "%s/tokens.u16", golden);
    FILE *in = fopen(path, "r");
    CHECK(in && fread(id, sizeof *id, B * T + 1, in) == B * T + 1, "cannot read %s", path);
    fclose(in);
    for (int b = 0; b < B; b++)
        for (int t = 0; t <= T; t++) w->token[b * (T + 1) + t] = id[b * T + t];
}

void imported_free(struct imported *w)
{
    ckpt_reader_free(&w->reader);
    manifest_free(&w->manifest);
}

/* n elements of the tensor of that name, if it has as many. */
static bool read_tensor(struct imported *w, const char *name, int64_t n, float *to)
{
    struct fault fault;
    const struct ckpt_tensor *t = manifest_find(&w->manifest, name);
    if (!t || t->n != n) return false;
    CHECK(!ckpt_try_read(&w->reader, t, 0, n, to, &fault), "%s", fault.why);
    return true;
}

bool imported_fill(struct imported *w, struct golden_model *gm)
{
    char name[200];
    bool fits = true;
    for (int i = 0; i < gm->params.n_params && fits; i++) {
        const struct param *p = &gm->params.param[i];
        const char *experts = p->n_dims == 3 ? strstr(p->name, ".experts.") : NULL;
        const int64_t n = experts ? p->n / p->dim[0] : p->n;
        for (int64_t e = 0; e < p->n / n && fits; e++) {
            snprintf(name, sizeof name, "model/%s", p->name);
            if (experts)
                snprintf(name, sizeof name, "model/%.*s.experts.%d.%s", (int)(experts - p->name),
                         p->name, (int)e, experts + 9);
            fits = read_tensor(w, name, n, (float *)p->w + e * n);
        }
    }
    const struct model *m = &gm->model;
    for (int l = 0; l < m->n_layers && fits && config_experts_biased(&gm->cfg.model); l++) {
        if (m->layer[l].moe < 0) continue;
        snprintf(name, sizeof name, "model/model.layers.%d.mlp.gate.e_score_correction_bias", l);
        fits = read_tensor(w, name, m->E, m->bias + (int64_t)m->layer[l].moe * m->E);
    }
    return fits;
}
