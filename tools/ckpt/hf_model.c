/* hf_model.c - see hf_model.h. */
#include "hf_model.h"

#include "model/param.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define EXPERTS ".experts."

__attribute__((format(printf, 5, 6))) static void
add(struct hf_model *hf, enum hf_role role, int n_dims, const int64_t *dim, const char *fmt, ...)
{
    if (hf->n % 1024 == 0) {
        hf->tensor = realloc(hf->tensor, ((size_t)hf->n + 1024) * sizeof *hf->tensor);
        CHECK(hf->tensor, "no memory for %d tensors", hf->n + 1024);
    }
    struct hf_tensor *t = &hf->tensor[hf->n++];
    *t = (struct hf_tensor){.role = role, .n_dims = n_dims, .dim = {dim[0]}, .n = dim[0]};
    if (n_dims == 2) t->n *= t->dim[1] = dim[1];
    int n = snprintf(t->name, sizeof t->name, HF_PREFIX);
    va_list args;
    va_start(args, fmt);
    n += vsnprintf(t->name + n, sizeof t->name - (size_t)n, fmt, args);
    va_end(args);
    CHECK(n < CKPT_NAME, "tensor name %s is too long", t->name);
}

/* What comes before the row of an MTP module or behind the row of a router. */
static void add_companions(struct hf_model *hf, const struct config_model *m, const struct param *p)
{
    const int64_t E = m->n_routed_experts, whole[] = {m->vocab_size, m->hidden_size};
    const char *tail = strrchr(p->name, '.');
    if (p->part == PART_ROUTER && m->topk_method == TOPK_NOAUX_TC)
        add(hf, HF_BIAS, 1, &E, "%.*s.e_score_correction_bias", (int)(tail - p->name), p->name);
    if (p->mtp && strstr(p->name, "shared_head.norm")) {
        add(hf, HF_EMBED_COPY, 2, whole, "model.layers.%d.embed_tokens.weight", p->layer);
        add(hf, HF_HEAD_COPY, 2, whole, "model.layers.%d.shared_head.head.weight", p->layer);
    }
}

static void add_param(struct hf_model *hf, const struct param *p)
{
    if (p->n_dims < 3) {
        add(hf, HF_WEIGHT, p->n_dims, p->dim, "%s", p->name);
        return;
    }
    const char *rest = strstr(p->name, EXPERTS) + sizeof EXPERTS - 1;
    for (int64_t e = 0; e < p->dim[0]; e++)
        add(hf, HF_WEIGHT, 2, p->dim + 1, "%.*s%lld.%s", (int)(rest - p->name), p->name,
            (long long)e, rest);
}

void hf_model_init(struct hf_model *hf, const struct config *cfg)
{
    struct param_table table;
    *hf = (struct hf_model){0};
    param_table_init_whole(&table, cfg);
    for (int i = 0; i < table.n_params; i++) {
        add_param(hf, &table.param[i]);
        add_companions(hf, &cfg->model, &table.param[i]);
    }
    param_table_free(&table);
}

void hf_model_free(struct hf_model *hf)
{
    free(hf->tensor);
    *hf = (struct hf_model){0};
}
