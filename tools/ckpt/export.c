/*
 * export.c - a checkpoint's weights as Hugging Face's files; see commands.h. Everything is written
 * into OUT.tmp, synced, and renamed: a directory named OUT is whole.
 */
#include "commands.h"
#include "hf_config.h"
#include "hf_model.h"
#include "hf_tokenizer.h"
#include "safetensors.h"

#include "base/text.h"
#include "ckpt/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HF_LATENT_EPS 1e-6 /* of the norms of the latents in Hugging Face's classes, always */

struct export
{
    const struct options *o;
    struct checkpoint c;
    struct config cfg;
    struct hf_model hf;
    struct st_out out;
    const struct ckpt_tensor **source; /* [hf.n] */
    char tmp[CKPT_PATH];
    float *wide;
    bf16 *narrow;
    struct hf_tokenizer tokenizer;
    struct hf_ids ids;
};

static int try_read_config(struct export *e, struct fault *fault)
{
    struct err_list errs = {0};
    char name[CKPT_PATH];
    path_print(name, "%s/" CKPT_MANIFEST ", its config", e->o->arg[0]);
    char *yaml = hf_config_section(e->c.manifest.config);
    if (!yaml) return fault_set(fault, CODE_DATA, "%s: no section model", name);
    const int bad = config_try_read(&e->cfg, name, yaml, &errs);
    if (bad) fault_set(fault, CODE_DATA, "%.*s", (int)strcspn(errs.text, "\n"), errs.text);
    err_free(&errs);
    free(yaml);
    return bad;
}

/* Where each tensor's values are: in its own, or, of an MTP module's copies, in what they copy. */
static int try_find_sources(struct export *e, struct fault *fault)
{
    const struct ckpt_tensor *before = NULL;
    char shape[2][SHAPE_BYTES];
    e->source = calloc((size_t)e->hf.n, sizeof *e->source);
    CHECK(e->source, "no memory for %d tensors", e->hf.n);
    for (int i = 0; i < e->hf.n; i++) {
        const struct hf_tensor *t = &e->hf.tensor[i];
        const char *name = t->role == HF_EMBED_COPY  ? HF_EMBED
                           : t->role == HF_HEAD_COPY ? HF_HEAD
                                                     : t->name;
        const struct ckpt_tensor *s = checkpoint_find(&e->c, before, name);
        if (!s)
            return fault_set(fault, CODE_DATA, "%s: no tensor %s, which its model has",
                             e->o->arg[0], name);
        if (s->n_dims != t->n_dims || s->dim[0] != t->dim[0] || s->n != t->n)
            return fault_set(fault, CODE_DATA, "%s: %s: found shape %s, expected %s", e->o->arg[0],
                             name, shape_text(shape[0], s->n_dims, s->dim),
                             shape_text(shape[1], t->n_dims, t->dim));
        e->source[i] = before = s;
    }
    return 0;
}

static void plan_files(struct export *e)
{
    e->out.n_tensors = e->hf.n;
    e->out.tensor = calloc((size_t)e->hf.n, sizeof *e->out.tensor);
    CHECK(e->out.tensor, "no memory for %d tensors", e->hf.n);
    for (int i = 0; i < e->hf.n; i++) {
        const struct hf_tensor *t = &e->hf.tensor[i];
        e->out.tensor[i] = (struct st_out_tensor){.name = hf_name(t),
                                                  .is_bf16 = e->o->is_bf16 && t->role != HF_BIAS,
                                                  .n_dims = t->n_dims,
                                                  .dim = {t->dim[0], t->dim[1]},
                                                  .n = t->n};
    }
    st_out_plan(&e->out, e->o->shard_bytes);
}

/* The model's own ids, else those of the data it was trained on, else what the tokenizer says. */
static int try_choose_ids(struct export *e, struct fault *fault)
{
    const struct config_model *m = &e->cfg.model;
    const struct ckpt_state *s = &e->c.manifest.state;
    if (hf_tokenizer_try_load(&e->tokenizer, e->o->tokenizer, e->o->max_vocab, m->vocab_size,
                              s->tokenizer_fingerprint, fault))
        return -1;
    e->ids = (struct hf_ids){.bos = m->bos_token_id >= 0 ? m->bos_token_id : s->bos_id,
                             .eos = m->eos_token_id >= 0 ? m->eos_token_id : s->eod_id,
                             .pad = m->pad_token_id >= 0 ? m->pad_token_id : s->pad_id};
    if (e->ids.eos < 0) e->ids.eos = (int)e->tokenizer.eod_id;
    return 0;
}

static int try_write_tensor(struct export *e, int i, int fd, const char *path, struct fault *fault)
{
    const struct st_out_tensor *t = &e->out.tensor[i];
    const int64_t size = t->is_bf16 ? 2 : 4;
    for (int64_t at = 0; at < t->n; at += PIECE) {
        const int64_t n = t->n - at < PIECE ? t->n - at : PIECE;
        if (checkpoint_try_read_f32(&e->c, e->source[i], at, n, e->wide, fault)) return -1;
        for (int64_t j = 0; t->is_bf16 && j < n; j++) e->narrow[j] = f32_to_bf16(e->wide[j]);
        const void *from = t->is_bf16 ? (const void *)e->narrow : e->wide;
        const int64_t odd = dtype_find_nonfinite(from, t->is_bf16 ? DTYPE_BF16 : DTYPE_F32, n);
        if (odd < n)
            return fault_set(fault, CODE_DATA,
                             "%s: %s: element %" PRId64 " is %g, expected a finite number%s",
                             e->c.dir, e->source[i]->name, at + odd, (double)e->wide[odd],
                             t->is_bf16 ? " of BF16" : "");
        if (io_try_write(fd, path, from, n * size, t->offset + at * size, fault)) return -1;
    }
    return 0;
}

static int try_write_shard(struct export *e, int f, struct fault *fault)
{
    char name[ST_FILE_NAME], path[CKPT_PATH];
    path_print(path, "%s/%s", e->tmp, st_out_file_name(name, f, e->out.n_files));
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return io_fault(fault, "create", path);
    int bad = io_try_write(fd, path, e->out.header[f], e->out.header_bytes[f], 0, fault);
    for (int i = 0; i < e->out.n_tensors && !bad; i++)
        if (e->out.tensor[i].file == f) bad = try_write_tensor(e, i, fd, path, fault);
    if (!bad && fsync(fd) != 0) bad = io_fault(fault, "sync", path);
    if (close(fd) != 0 && !bad) bad = io_fault(fault, "close", path);
    return bad;
}

static int try_write_text(struct export *e, const char *name, const char *text, int64_t bytes,
                          struct fault *fault)
{
    char path[CKPT_PATH];
    path_print(path, "%s/%s", e->tmp, name);
    return io_try_write_file(path, text, bytes, fault);
}

static int try_write_tokenizer(struct export *e, struct fault *fault)
{
    if (!e->tokenizer.text) return 0;
    char *config = hf_tokenizer_config(&e->tokenizer, e->ids.bos, e->ids.eos, e->ids.pad,
                                       e->cfg.model.max_position_embeddings);
    const int bad =
        try_write_text(e, "tokenizer.json", e->tokenizer.text, e->tokenizer.bytes, fault) ||
        try_write_text(e, "tokenizer_config.json", config, (int64_t)strlen(config), fault);
    free(config);
    return bad;
}

static int try_write_all(struct export *e, const char *config_json, struct fault *fault)
{
    int bad = 0;
    for (int f = 0; f < e->out.n_files && !bad; f++) bad = try_write_shard(e, f, fault);
    if (bad) return bad;
    char *index = st_out_index(&e->out);
    bad = try_write_text(e, ST_INDEX, index, (int64_t)strlen(index), fault) ||
          try_write_text(e, "config.json", config_json, (int64_t)strlen(config_json), fault) ||
          try_write_tokenizer(e, fault);
    free(index);
    return bad || io_try_sync_dir(e->tmp, fault) ? -1 : 0;
}

/* OUT is not there, or is an empty directory. */
static int try_begin(struct export *e, struct fault *fault)
{
    const char *out = e->o->arg[1];
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/') n--;
    path_print(e->tmp, "%.*s.tmp", (int)n, out);
    if (rmdir(out) != 0 && errno != ENOENT)
        return fault_set(fault, CODE_CONFIG,
                         "%s: expected nothing there, or an empty directory: %s", out,
                         strerror(errno));
    if (mkdir(e->tmp, 0777) == 0) return 0;
    return errno != EEXIST ? io_fault(fault, "make", e->tmp)
                           : fault_set(fault, CODE_CONFIG,
                                       "%s: expected nothing there; remove it when an export that "
                                       "was cut short has left it",
                                       e->tmp);
}

static int try_publish(struct export *e, struct fault *fault)
{
    char parent[CKPT_PATH];
    path_print(parent, "%s", e->tmp);
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    if (rename(e->tmp, e->o->arg[1]) != 0) return io_fault(fault, "rename to its name", e->tmp);
    return io_try_sync_dir(slash ? parent : ".", fault);
}

/* After a fault. */
static void remove_written(const struct export *e)
{
    static const char *const names[] = {ST_INDEX, "config.json", "tokenizer.json",
                                        "tokenizer_config.json"};
    char name[ST_FILE_NAME], path[CKPT_PATH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_print(path, "%s/%s", e->tmp, names[i]));
    for (int f = 0; f < e->out.n_files; f++)
        unlink(path_print(path, "%s/%s", e->tmp, st_out_file_name(name, f, e->out.n_files)));
    rmdir(e->tmp);
}

static void print_notes(const struct export *e)
{
    const struct config_model *m = &e->cfg.model;
    const struct ckpt_state *data = &e->c.manifest.state;
    char bytes[TEXT_NUMBER];
    int64_t sum = 0;
    for (int f = 0; f < e->out.n_files; f++) sum += e->out.file_bytes[f];
    printf("%s: step %" PRId64 ": %d tensors in %d file%s, %s bytes\n", e->o->arg[1],
           e->c.manifest.state.step, e->out.n_tensors, e->out.n_files, text_s(e->out.n_files),
           text_grouped(bytes, sum));
    if (m->latent_norm_eps != HF_LATENT_EPS)
        printf("note: latent_norm_eps is %g; Hugging Face's classes use 1e-6 all the same, so that "
               "losses differ a little\n",
               m->latent_norm_eps);
    if (m->eos_token_id >= 0 && data->eod_id >= 0 && m->eos_token_id != data->eod_id)
        printf("note: eos_token_id is model.eos_token_id %d; documents of the training data end "
               "with %d\n",
               m->eos_token_id, data->eod_id);
    if (m->num_nextn_predict_layers && m->mtp_hidden == MTP_HIDDEN_RAW)
        printf("note: mtp_hidden: raw has no key in config.json: programs that draft with the MTP "
               "modules give them other input and draft worse\n");
}

static int try_export(struct export *e, struct fault *fault)
{
    if (checkpoint_try_open(&e->c, e->o->arg[0], fault) || try_read_config(e, fault)) return -1;
    if (try_choose_ids(e, fault)) return -1;
    char *text = hf_config_try_text(&e->cfg.model, e->o->is_bf16, e->ids, fault);
    if (!text) return -1;
    hf_model_init(&e->hf, &e->cfg);
    int bad = try_find_sources(e, fault);
    if (!bad) {
        plan_files(e);
        bad = try_begin(e, fault);
    }
    if (!bad && (try_write_all(e, text, fault) || try_publish(e, fault))) {
        remove_written(e);
        bad = -1;
    }
    free(text);
    return bad;
}

int cmd_export(const struct options *o)
{
    struct export e = {.o = o};
    struct fault fault;
    e.wide = malloc(PIECE * sizeof *e.wide);
    e.narrow = malloc(PIECE * sizeof *e.narrow);
    CHECK(e.wide && e.narrow, "no memory for a piece of a tensor");
    const int bad = try_export(&e, &fault);
    if (!bad) print_notes(&e);
    st_out_free(&e.out);
    free(e.out.tensor);
    free(e.source);
    hf_tokenizer_free(&e.tokenizer);
    hf_model_free(&e.hf);
    config_free(&e.cfg);
    checkpoint_close(&e.c);
    free(e.wide);
    free(e.narrow);
    return bad ? report(&fault) : CODE_DONE;
}
