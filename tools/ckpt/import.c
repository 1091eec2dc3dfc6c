/*
 * import.c - Hugging Face's files as a checkpoint of weights alone, step 0; see commands.h. What
 * is wrong with them is told before anything is written.
 */
#include "import.h"

#include "commands.h"
#include "foreign.h"

#include "base/text.h"
#include "base/version.h"
#include "ckpt/io.h"
#include "ckpt/layout.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define FILE_BYTES INT64_C(4000000000)
enum { BOX = 1 << 24 }; /* elements with a checksum of their own */

/* Whether the files have a tensor of layer `layer`. */
static bool has_layer(const struct safetensors *st, int layer)
{
    char prefix[64];
    const int n = snprintf(prefix, sizeof prefix, "model.layers.%d.", layer);
    for (int i = 0; i < st->n_tensors; i++)
        if (!strncmp(st->tensor[i].name, prefix, (size_t)n)) return true;
    return false;
}

/* Programs that have no MTP keep its number in config.json and drop its weights. */
static void lower_mtp(struct import *im)
{
    struct config_model *m = &im->cfg.model;
    int n = 0;
    while (n < m->num_nextn_predict_layers && has_layer(&im->st, m->num_hidden_layers + n)) n++;
    if (n == m->num_nextn_predict_layers || n > 0) return;
    printf("note: %s: config.json says %d MTP modules, the files hold none: imported without\n",
           im->dir, m->num_nextn_predict_layers);
    m->num_nextn_predict_layers = 0;
}

/* The lines of two printed models that differ. */
static void print_differences(const char *ours, const char *theirs)
{
    const char *a = ours, *b = theirs;
    while (*a && *b) {
        const int n_a = (int)strcspn(a, "\n"), n_b = (int)strcspn(b, "\n");
        if (n_a != n_b || memcmp(a, b, (size_t)n_a) != 0)
            printf("note: --model: %.*s; config.json: %.*s\n", n_a - (int)strspn(a, " "),
                   a + strspn(a, " "), n_b - (int)strspn(b, " "), b + strspn(b, " "));
        a += n_a + 1;
        b += n_b + 1;
    }
}

/* The model of --model, which a config.json beside the weights may contradict. */
static int try_load_model(struct import *im, const struct options *o, const char *path,
                          struct err_list *errs)
{
    struct config theirs;
    struct err_list ignored = {0};
    if (config_try_load(&im->cfg, o->model, 0, NULL, errs)) return -1;
    im->set.block[0] = im->set.block[1] = 128;
    if (access(path, F_OK) != 0) return 0;
    hf_settings_free(&im->set);
    if (hf_config_try_read(&theirs, &im->set, path, &ignored) == 0) {
        char *a = hf_config_yaml(&im->cfg), *b = hf_config_yaml(&theirs);
        print_differences(a, b);
        free(a);
        free(b);
    } else {
        printf("note: %.*s\n", (int)strcspn(ignored.text, "\n"), ignored.text);
    }
    config_free(&theirs);
    err_free(&ignored);
    return 0;
}

static int try_read_model(struct import *im, const struct options *o, struct err_list *errs)
{
    char *path = foreign_path(im->dir, "config.json");
    int bad;
    if (o->model) {
        bad = try_load_model(im, o, path, errs);
    } else {
        bad = hf_config_try_read(&im->cfg, &im->set, path, errs);
        if (!bad) lower_mtp(im);
    }
    hf_settings_print(&im->set, stdout);
    free(path);
    if (!bad) hf_model_init(&im->hf, &im->cfg);
    return bad;
}

/* An MTP module shares embedding and head here: a copy with other values would be lost. */
static int try_check_copies(struct import *im, float *buffer[2], struct fault *fault)
{
    for (int i = 0; i < im->hf.n; i++) {
        const struct hf_tensor *t = &im->hf.tensor[i];
        if (!hf_is_copy(t) || !im->source[i].weight) continue;
        int main = 0;
        while (strcmp(im->hf.tensor[main].name, t->role == HF_EMBED_COPY ? HF_EMBED : HF_HEAD) != 0)
            main++;
        for (int64_t at = 0; at < t->n; at += PIECE) {
            const int64_t n = t->n - at < PIECE ? t->n - at : PIECE;
            if (import_try_read(im, i, at, n, buffer[0], fault) ||
                import_try_read(im, main, at, n, buffer[1], fault))
                return -1;
            for (int64_t j = 0; j < n; j++)
                if (memcmp(&buffer[0][j], &buffer[1][j], sizeof(float)) != 0)
                    return fault_set(fault, CODE_DATA,
                                     "%s: %s: element %" PRId64 " is %g, expected %g as in %s, "
                                     "which MTP modules share",
                                     im->st.path[im->source[i].weight->file], hf_name(t), at + j,
                                     (double)buffer[0][j], (double)buffer[1][j],
                                     hf_name(&im->hf.tensor[main]));
        }
    }
    return 0;
}

/* A checkpoint being written. */
struct writing {
    struct import *im;
    struct manifest m;
    struct layout layout;
    int *from; /* [n_tensors] index into hf */
    char dir[CKPT_PATH];
    int fd, file; /* the open one; -1: none */
    float *buffer;
};

static void list_tensors(struct writing *w)
{
    const struct hf_model *hf = &w->im->hf;
    w->m.tensor = calloc((size_t)hf->n, sizeof *w->m.tensor);
    w->from = calloc((size_t)hf->n, sizeof *w->from);
    CHECK(w->m.tensor && w->from, "no memory for %d tensors", hf->n);
    for (int i = 0; i < hf->n; i++) {
        const struct hf_tensor *t = &hf->tensor[i];
        if (hf_is_copy(t)) continue;
        struct ckpt_tensor *to = &w->m.tensor[w->m.n_tensors];
        *to = (struct ckpt_tensor){.dtype = DTYPE_F32,
                                   .n_dims = t->n_dims,
                                   .dim = {t->dim[0], t->dim[1]},
                                   .n = t->n,
                                   .first_box = w->m.n_boxes,
                                   .n_boxes = (int)((t->n + BOX - 1) / BOX)};
        memcpy(to->name, t->name, sizeof to->name);
        w->from[w->m.n_tensors++] = i;
        w->m.n_boxes += to->n_boxes;
    }
    w->m.box = calloc((size_t)w->m.n_boxes, sizeof *w->m.box);
    CHECK(w->m.box, "no memory for %d boxes", w->m.n_boxes);
}

static const char *path_of(const struct writing *w, int file, char path[CKPT_PATH])
{
    path_print(path, "%s/%s", w->dir, w->layout.file[file].file.name);
    return path;
}

static int try_close(struct writing *w, int bad, struct fault *fault)
{
    char path[CKPT_PATH];
    const int fd = w->fd;
    w->fd = -1;
    return fd < 0 ? bad : io_try_finish(fd, path_of(w, w->file, path), bad, fault);
}

/* Tensors come file by file. */
static int try_open(struct writing *w, int file, struct fault *fault)
{
    char path[CKPT_PATH];
    if (w->fd >= 0 && w->file == file) return 0;
    if (try_close(w, 0, fault)) return -1;
    w->fd = io_try_create(path_of(w, file, path), O_WRONLY, fault);
    w->file = file;
    return w->fd < 0 ? -1 : layout_try_write(&w->layout.file[file], w->fd, path, fault);
}

static int check_finite(const struct writing *w, int i, int64_t at, int64_t n, struct fault *fault)
{
    const int64_t j = dtype_find_nonfinite(w->buffer, DTYPE_F32, n);
    if (j == n) return 0;
    return fault_set(fault, CODE_DATA,
                     "%s: %s: element %" PRId64 " is %g, expected a finite number",
                     w->im->st.path[w->im->source[i].weight->file], hf_name(&w->im->hf.tensor[i]),
                     at + j, (double)w->buffer[j]);
}

static int try_copy_box(struct writing *w, int tensor, struct ckpt_box *box, XXH3_state_t *hash,
                        struct fault *fault)
{
    const struct ckpt_tensor *t = &w->m.tensor[tensor];
    const char *name = w->layout.file[t->file].file.name;
    const int from = w->from[tensor];
    XXH3_64bits_reset(hash);
    for (int64_t done = 0; done < box->count; done += PIECE) {
        const int64_t n = box->count - done < PIECE ? box->count - done : PIECE;
        const int64_t at = box->base + done;
        if (import_try_read(w->im, from, at, n, w->buffer, fault)) return -1;
        if (check_finite(w, from, at, n, fault)) return -1;
        XXH3_64bits_update(hash, w->buffer, (size_t)n * sizeof(float));
        if (io_try_write(w->fd, name, w->buffer, n * 4, t->offset + at * 4, fault)) return -1;
    }
    box->hash = XXH3_64bits_digest(hash);
    return 0;
}

static int try_copy_tensors(struct writing *w, struct fault *fault)
{
    XXH3_state_t *hash = XXH3_createState();
    CHECK(hash, "no memory for a checksum");
    int bad = 0;
    for (int i = 0; i < w->m.n_tensors && !bad; i++) {
        const struct ckpt_tensor *t = &w->m.tensor[i];
        bad = try_open(w, t->file, fault);
        for (int b = 0; b < t->n_boxes && !bad; b++) {
            const int64_t base = (int64_t)b * BOX, n = t->n - base < BOX ? t->n - base : BOX;
            struct ckpt_box *box = &w->m.box[t->first_box + b];
            *box = (struct ckpt_box){.tensor = i, .base = base, .run = n, .stride = n, .count = n};
            bad = try_copy_box(w, i, box, hash, fault);
        }
    }
    XXH3_freeState(hash);
    return try_close(w, bad, fault);
}

/* The model's YAML beside the checkpoint, for the `base` of a run. It comes first: an import that
 * is killed may leave it behind, but never a checkpoint without it. */
static int try_write_yaml(const struct import *im, const char *root, struct fault *fault)
{
    char path[CKPT_PATH], fresh[CKPT_PATH];
    char *yaml = hf_config_yaml(&im->cfg);
    path_print(fresh, "%s.tmp", path_print(path, "%s/model.yaml", root));
    int bad = io_try_write_file(fresh, yaml, (int64_t)strlen(yaml), fault);
    if (!bad && rename(fresh, path) != 0) bad = io_fault(fault, "rename to its name", fresh);
    free(yaml);
    return bad;
}

static int try_write(struct writing *w, const char *root, struct fault *fault)
{
    char scratch[CKPT_PATH], path[CKPT_PATH];
    int64_t *steps;
    const int n_there = store_try_list(root, &steps, fault);
    free(steps);
    if (n_there > 0) /* `latest` would move away from the run that is there */
        return fault_set(fault, CODE_CONFIG, "%s: found %d checkpoints, expected none", root,
                         n_there);
    const bool is_new = access(root, F_OK) != 0;
    if (n_there < 0 || store_try_begin(root, 0, fault)) return -1;
    store_tmp_path(w->dir, root, 0);
    list_tensors(w);
    path_print(scratch, "%s/scratch", w->dir);
    layout_make(&w->layout, scratch, w->m.tensor, w->m.n_tensors, FILE_BYTES);
    w->m.n_files = w->layout.n_files;
    w->m.file = calloc((size_t)w->m.n_files, sizeof *w->m.file);
    CHECK(w->m.file, "no memory for %d files", w->m.n_files);
    for (int i = 0; i < w->m.n_files; i++) w->m.file[i] = w->layout.file[i].file;
    int bad = try_copy_tensors(w, fault) || try_write_yaml(w->im, root, fault) ||
              store_try_publish(root, &w->m, fault);
    struct fault left;
    if (!bad) store_try_move_latest(root, 0, &left);
    if (bad) {
        store_try_drop(w->dir, &left);
        if (is_new) {
            unlink(path_print(path, "%s/model.yaml", root));
            rmdir(root);
        }
    }
    return bad ? -1 : 0;
}

static int write_checkpoint(struct import *im, const char *root, float *buffer, struct fault *fault)
{
    struct writing w = {.im = im, .fd = -1, .buffer = buffer};
    snprintf(w.m.version, sizeof w.m.version, "%s, imported", version_commit());
    w.m.state = (struct ckpt_state){.loss = NAN,
                                    .heldout_loss = NAN,
                                    .bos_id = -1,
                                    .eod_id = -1,
                                    .pad_id = -1,
                                    .ranks = 1,
                                    .dp = 1,
                                    .tp = 1,
                                    .ep = 1};
    w.m.config = hf_config_yaml(&im->cfg);
    const int bad = try_write(&w, root, fault);
    if (!bad) {
        char count[TEXT_NUMBER], path[CKPT_PATH];
        int64_t n = 0;
        for (int i = 0; i < w.m.n_tensors; i++) n += w.m.tensor[i].n;
        printf("%s: %d tensors, %s elements; model in %s/model.yaml\n", store_path(path, root, 0),
               w.m.n_tensors, text_grouped(count, n), root);
    }
    free(w.from);
    layout_free(&w.layout);
    manifest_free(&w.m);
    return bad ? -1 : 0;
}

int cmd_import(const struct options *o)
{
    struct import im = {.dir = o->arg[0], .st = {.open_file = -1}};
    struct err_list errs = {0};
    struct fault fault = {0};
    int64_t n_left_out = 0;
    float *buffer[2];
    int code = CODE_DONE;
    for (int i = 0; i < 2; i++) {
        buffer[i] = malloc(PIECE * sizeof *buffer[i]);
        CHECK(buffer[i], "no memory for a piece of a tensor");
    }
    if (safetensors_try_open(&im.st, im.dir, &fault))
        code = report(&fault);
    else if (try_read_model(&im, o, &errs))
        code = report_all(&errs, CODE_CONFIG);
    else if (import_try_match(&im, &n_left_out, &errs))
        code = report_all(&errs, CODE_DATA);
    else if (try_check_copies(&im, buffer, &fault))
        code = report(&fault);
    else {
        if (n_left_out)
            printf("note: %" PRId64 " tensor%s left out, of MTP modules that the model does not "
                   "have\n",
                   n_left_out, text_s(n_left_out));
        if (write_checkpoint(&im, o->arg[1], buffer[0], &fault)) code = report(&fault);
    }
    import_free(&im);
    err_free(&errs);
    for (int i = 0; i < 2; i++) free(buffer[i]);
    return code;
}
