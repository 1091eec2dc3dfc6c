/* match.c - see import.h. */
#include "import.h"

#include "commands.h"

#include <stdlib.h>
#include <string.h>

#define SCALE "_scale_inv"
#define LAYERS "model.layers."

/* Rows and columns of a matrix; a vector is one row. */
static int64_t columns_of(const struct hf_tensor *t)
{
    return t->n_dims == 2 ? t->dim[1] : t->dim[0];
}

static int64_t blocks_of(int64_t n, int block)
{
    return (n + block - 1) / block;
}

static const struct st_tensor *find_scale(const struct import *im, const struct hf_tensor *t)
{
    char name[CKPT_NAME + sizeof SCALE];
    snprintf(name, sizeof name, "%s" SCALE, hf_name(t));
    return safetensors_find(&im->st, name);
}

static void check_scale(const struct import *im, const struct hf_tensor *t,
                        const struct import_source *s, struct err_list *errs)
{
    char shape[2][SHAPE_BYTES];
    const char *path = im->st.path[s->weight->file];
    const int64_t want[] = {blocks_of(t->dim[0], im->set.block[0]),
                            blocks_of(columns_of(t), im->set.block[1])};
    if (!s->scale)
        err_add(errs, "%s: %s: F8_E4M3, but there is no %s" SCALE, path, hf_name(t), hf_name(t));
    else if (t->n_dims != 2 || s->scale->n_dims != 2 || s->scale->dim[0] != want[0] ||
             s->scale->dim[1] != want[1])
        err_add(errs, "%s: %s: found shape %s, expected %s: blocks of %d x %d",
                im->st.path[s->scale->file], s->scale->name,
                shape_text(shape[0], s->scale->n_dims, s->scale->dim),
                shape_text(shape[1], 2, want), im->set.block[0], im->set.block[1]);
    else if (s->scale->type->kind != ST_F32 && s->scale->type->kind != ST_BF16)
        err_add(errs, "%s: %s: found %s, expected F32 or BF16", im->st.path[s->scale->file],
                s->scale->name, s->scale->type->name);
}

static void match(const struct import *im, const struct hf_tensor *t, struct import_source *s,
                  struct err_list *errs)
{
    char shape[2][SHAPE_BYTES];
    const struct st_tensor *w = s->weight = safetensors_find(&im->st, hf_name(t));
    if (!w) {
        if (!hf_is_copy(t)) err_add(errs, "%s: %s is missing", im->dir, hf_name(t));
        return;
    }
    const char *path = im->st.path[w->file];
    bool same = w->n_dims == t->n_dims;
    for (int d = 0; same && d < t->n_dims; d++) same = w->dim[d] == t->dim[d];
    if (!same) {
        err_add(errs, "%s: %s: found shape %s, expected %s", path, w->name,
                shape_text(shape[0], w->n_dims, w->dim), shape_text(shape[1], t->n_dims, t->dim));
    } else if (w->type->kind == ST_NO_WEIGHT) {
        err_add(errs, "%s: %s: found %s, expected F32, BF16, F16 or F8_E4M3", path, w->name,
                w->type->name);
    } else if (w->type->kind == ST_E4M3) {
        s->scale = find_scale(im, t);
        check_scale(im, t, s, errs);
    }
}

static int by_address(const void *a, const void *b)
{
    const struct st_tensor *x = *(const struct st_tensor *const *)a;
    const struct st_tensor *y = *(const struct st_tensor *const *)b;
    return (x > y) - (x < y);
}

/* A tensor of an MTP module behind the last of the model. */
static bool is_beyond(const struct import *im, const char *name)
{
    const struct config_model *m = &im->cfg.model;
    char norm[64];
    if (strncmp(name, LAYERS, sizeof LAYERS - 1) != 0) return false;
    const long layer = strtol(name + sizeof LAYERS - 1, NULL, 10);
    snprintf(norm, sizeof norm, LAYERS "%ld.enorm.weight", layer);
    return layer >= m->num_hidden_layers + m->num_nextn_predict_layers &&
           safetensors_find(&im->st, norm);
}

static bool has_ending(const char *name, const char *ending)
{
    const size_t n = strlen(name), n_ending = strlen(ending);
    return n >= n_ending && !strcmp(name + n - n_ending, ending);
}

static void name_extras(const struct import *im, int64_t *n_left_out, struct err_list *errs)
{
    const struct st_tensor **used = malloc(2 * ((size_t)im->hf.n + 1) * sizeof *used), *t;
    CHECK(used, "no memory for %d tensors", im->hf.n);
    size_t n = 0;
    for (int i = 0; i < im->hf.n; i++) {
        if (im->source[i].weight) used[n++] = im->source[i].weight;
        if (im->source[i].scale) used[n++] = im->source[i].scale;
    }
    qsort(used, n, sizeof *used, by_address);
    *n_left_out = 0;
    for (int i = 0; i < im->st.n_tensors; i++) {
        t = &im->st.tensor[i];
        if ((n && bsearch(&t, used, n, sizeof *used, by_address)) ||
            has_ending(t->name, "rotary_emb.inv_freq") || t->n == 0) /* experts of width 0 */
            continue;
        if (is_beyond(im, t->name))
            ++*n_left_out;
        else
            err_add(errs, "%s: %s is not in the model", im->st.path[t->file], t->name);
    }
    free(used);
}

int import_try_match(struct import *im, int64_t *n_left_out, struct err_list *errs)
{
    const int n_errs = errs->n;
    im->source = calloc((size_t)im->hf.n, sizeof *im->source);
    CHECK(im->source, "no memory for %d tensors", im->hf.n);
    for (int i = 0; i < im->hf.n; i++) match(im, &im->hf.tensor[i], &im->source[i], errs);
    name_extras(im, n_left_out, errs);
    return errs->n == n_errs ? 0 : -1;
}

/* The scales of rows of blocks [top, end). */
static int try_read_scales(struct import *im, const struct st_tensor *scale, int64_t top,
                           int64_t end, struct fault *fault)
{
    const int64_t wide = scale->dim[1], n = (end - top) * wide;
    if (n > im->n_scale) {
        free(im->scale);
        im->scale = malloc((size_t)n * sizeof *im->scale);
        CHECK(im->scale, "no memory for scales of %s", scale->name);
        im->n_scale = n;
    }
    return safetensors_try_read_f32(&im->st, scale, top * wide, n, im->scale, fault);
}

/* x: elements [first, first + n). */
static int try_scale(struct import *im, const struct hf_tensor *t, const struct st_tensor *scale,
                     int64_t first, int64_t n, float *x, struct fault *fault)
{
    const int64_t columns = columns_of(t), block = im->set.block[1];
    const int64_t top = first / columns / im->set.block[0];
    const int64_t end = (first + n - 1) / columns / im->set.block[0] + 1;
    if (try_read_scales(im, scale, top, end, fault)) return -1;
    for (int64_t at = 0, stop; at < n; at = stop) { /* to the end of a block or a row */
        const int64_t row = (first + at) / columns, column = (first + at) % columns;
        const int64_t block_end = (column / block + 1) * block;
        stop = at + (block_end < columns ? block_end : columns) - column;
        if (stop > n) stop = n;
        const float by = im->scale[(row / im->set.block[0] - top) * scale->dim[1] + column / block];
        for (int64_t i = at; i < stop; i++) x[i] *= by;
    }
    return 0;
}

int import_try_read(struct import *im, int i, int64_t first, int64_t n, float *to,
                    struct fault *fault)
{
    const struct import_source *s = &im->source[i];
    if (safetensors_try_read_f32(&im->st, s->weight, first, n, to, fault)) return -1;
    return s->scale ? try_scale(im, &im->hf.tensor[i], s->scale, first, n, to, fault) : 0;
}

void import_free(struct import *im)
{
    free(im->scale);
    free(im->source);
    hf_model_free(&im->hf);
    config_free(&im->cfg);
    hf_settings_free(&im->set);
    safetensors_close(&im->st);
}
