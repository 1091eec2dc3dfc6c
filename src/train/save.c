/* save.c - see save.h. */
#include "train/save.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/place.h"
#include "base/version.h"
#include "ckpt/layout.h"
#include "ckpt/store.h"
#include "train/owner.h"
#include "train/pieces.h"
#include "train/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

enum save_phase { SAVE_IDLE, SAVE_WRITING, SAVE_PUBLISHING };

struct saver {
    struct pieces pieces;
    struct writer writer;
    struct layout layout;   /* rank 0 */
    struct ckpt_file *file; /* [n_files] rank 0: all, elsewhere their names */
    int n_files;
    int64_t file_bytes;       /* of all files */
    int *n_boxes;             /* [ranks] rank 0 */
    struct ckpt_box *all_box; /* of all ranks; rank 0 */
    int n_all;
    struct manifest manifest; /* of the save on its way; rank 0 */
    char *config;
    char root[CKPT_PATH];
    enum save_phase phase;
    int64_t last_step;          /* that is safe; -1: none */
    bool failed;                /* the last that was begun */
    struct ckpt_best safe_best; /* of the last that is safe */
    double last_s;              /* when the last one began */
    double start_s, stall_s;    /* of the save on its way */
};

bool save_wanted(const struct config *cfg)
{
    const struct config_checkpoint *c = &cfg->checkpoint;
    return c->every > 0 || c->every_minutes > 0 || c->on_exit || c->on_signal || c->keep_best ||
           cfg->run.exit_after > 0;
}

const char *save_root(const struct config *cfg, char path[CKPT_PATH])
{
    return path_print(path, "%s/checkpoints", cfg->run.dir);
}

/* Touched at once, or the first save would pay for it. */
static void *take(struct run *run, size_t bytes)
{
    void *block = arena_push(&run->snapshot, bytes);
    RUN(run, zero, block, bytes);
    return block;
}

void save_place(struct run *run)
{
    const size_t moment = dtype_bytes(run->cfg->optimizer.moments_dtype);
    const struct model *m = &run->model;
    if (!save_wanted(run->cfg)) return;
    for (int i = 0; i < N_BUCKETS; i++) {
        const size_t n = (size_t)run->params.bucket[i].n_shard;
        if (n == 0) continue;
        run->copy_of[0][i] = take(run, n * sizeof(float));
        run->copy_of[1][i] = take(run, n * moment);
        run->copy_of[2][i] = take(run, n * moment);
    }
    run->copy_of_bias = take(run, (size_t)m->n_moe * (size_t)m->E * sizeof(float));
}

/* Masters, moments and biases into the copy; it may not be on its way to a file. */
static void take_snapshot(struct run *run)
{
    const size_t moment = dtype_bytes(run->cfg->optimizer.moments_dtype);
    const struct model *m = &run->model;
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &run->params.bucket[i];
        const size_t n = (size_t)b->n_shard;
        if (b->n == 0) continue;
        RUN(run, copy, run->copy_of[0][i], b->master, n * sizeof(float));
        RUN(run, copy, run->copy_of[1][i], run->optim.m[i], n * moment);
        RUN(run, copy, run->copy_of[2][i], run->optim.v[i], n * moment);
    }
    RUN(run, copy, run->copy_of_bias, m->bias, (size_t)m->n_moe * (size_t)m->E * sizeof(float));
    RUN(run, stream_sync);
}

/* Where the copy of a piece lies. */
static const void *copy_of(const struct run *run, const struct piece *piece)
{
    if (!piece->param)
        return (const char *)run->copy_of_bias + ((char *)piece->at - (char *)run->model.bias);
    const int i = piece->param->bucket;
    const struct bucket *b = &run->params.bucket[i];
    const char *live[] = {(char *)b->master, run->optim.m[i], run->optim.v[i]};
    const size_t moment = dtype_bytes(piece->dtype);
    for (int kind = 0; kind < 3; kind++) {
        const ptrdiff_t at = (char *)piece->at - live[kind];
        const size_t size = kind == 0 ? sizeof(float) : moment;
        if (piece->is_weight == (kind == 0) && at >= 0 &&
            at < (ptrdiff_t)((size_t)b->n_shard * size))
            return (char *)run->copy_of[kind][i] + at;
    }
    DIE(CODE_INTERNAL, "%s has no copy", piece->param->name);
}

/* Files and offsets are the same in every checkpoint of the run: rank 0 finds them once. */
static void find_layout(struct run *run, struct saver *s)
{
    const int n = s->pieces.n_tensors;
    char scratch[CKPT_PATH];
    struct fault fault = {0};
    if (run->mesh.rank == 0) {
        const int bad = store_try_prepare(s->root, scratch, &fault);
        CHECK_CODE(fault.code, !bad, "%s", fault.why);
        layout_make(&s->layout, scratch, s->pieces.tensor, n, run->cfg->checkpoint.file_bytes);
    }
    mesh_broadcast(s->pieces.tensor, sizeof *s->pieces.tensor * (size_t)n, "places of tensors");
    s->n_files = s->pieces.tensor[n - 1].file + 1;
    s->file = mem_alloc(sizeof *s->file * (size_t)s->n_files, "files of a checkpoint");
    for (int i = 0; i < s->layout.n_files; i++) s->file[i] = s->layout.file[i].file;
    mesh_broadcast(s->file, sizeof *s->file * (size_t)s->n_files, "files of a checkpoint");
    for (int i = 0; i < s->n_files; i++) s->file_bytes += s->file[i].bytes;
}

/* Rank 0 has room for the boxes of all. */
static void make_room_for_boxes(struct run *run, struct saver *s)
{
    const int size = run->mesh.size;
    s->n_boxes = mem_alloc(sizeof *s->n_boxes * (size_t)size, "numbers of boxes");
    mesh_gather(&s->writer.n, sizeof s->writer.n, 1, s->n_boxes, NULL, "numbers of boxes");
    for (int r = 0; run->mesh.rank == 0 && r < size; r++) s->n_all += s->n_boxes[r];
    s->all_box = mem_alloc(sizeof *s->all_box * (size_t)(s->n_all + 1), "boxes of a checkpoint");
}

void save_init(struct run *run)
{
    if (!save_wanted(run->cfg)) return;
    struct saver *s = mem_alloc(sizeof *s, "checkpoints");
    run->saver = s;
    s->last_step = -1;
    s->safe_best = run->best;
    s->last_s = clock_s();
    save_root(run->cfg, s->root);
    pieces_init(&s->pieces, run);
    find_layout(run, s);
    writer_init(&s->writer, run, &s->pieces, s->n_files);
    for (int i = 0; i < s->pieces.n; i++) {
        const struct piece *piece = &s->pieces.piece[i];
        if (!piece->shared || run->mesh.rank == 0)
            writer_add(&s->writer, piece, copy_of(run, piece));
    }
    make_room_for_boxes(run, s);
    s->config = config_to_text(run->cfg);
    s->manifest = (struct manifest){.n_files = s->n_files,
                                    .n_tensors = s->pieces.n_tensors,
                                    .n_boxes = s->n_all,
                                    .file = s->file,
                                    .tensor = s->pieces.tensor,
                                    .config = s->config};
    s->manifest.box =
        mem_alloc(sizeof(struct ckpt_box) * (size_t)(s->n_all + 1), "boxes of a checkpoint");
    snprintf(s->manifest.version, sizeof s->manifest.version, "%s", version_commit());
}

void save_free(struct run *run)
{
    struct saver *s = run->saver;
    if (!s) return;
    writer_free(&s->writer);
    free(s->config);
    mem_free(s->manifest.box);
    mem_free(s->all_box);
    mem_free(s->n_boxes);
    mem_free(s->file);
    if (run->mesh.rank == 0) layout_free(&s->layout);
    pieces_free(&s->pieces);
    mem_free(s);
    run->saver = NULL;
}

bool save_due(const struct run *run)
{
    const struct config_checkpoint *c = &run->cfg->checkpoint;
    const bool at_step = c->every > 0 && run->progress.step % c->every == 0;
    return run->saver &&
           (at_step || run->new_best || (c->every_minutes > 0 && run->agreed.save_due > 0));
}

void save_tell(const struct run *run, struct agreed *mine)
{
    const struct saver *s = run->saver;
    if (!s) return;
    const double minutes = (clock_s() - s->last_s) / 60;
    mine->save_due = run->mesh.rank == 0 && minutes >= run->cfg->checkpoint.every_minutes;
    mine->save_busy = s->phase != SAVE_IDLE && !writer_done(&s->writer);
    mine->save_failed = s->phase != SAVE_IDLE && writer_done(&s->writer) && s->writer.fault.code;
}

_Static_assert((int)CKPT_SOURCES >= (int)MAX_SOURCES, "a checkpoint has room for every source");

static void note_sources(const struct dataset *ds, struct ckpt_state *state)
{
    const struct mix_start *start = dataset_mix_start(ds);
    state->n_sources = dataset_sources(ds);
    state->mixed_from = start->g;
    for (int i = 0; i < state->n_sources; i++)
        state->source[i] =
            (struct ckpt_source){dataset_source_info(ds, i).n_samples, start->taken[i]};
}

/* The state that belongs to the copies. */
static void note_state(struct run *run, struct saver *s)
{
    const struct special_ids ids = dataset_ids(run->train_data);
    const struct progress *p = &run->progress;
    s->manifest.state = (struct ckpt_state){
        .step = p->step,
        .tokens = p->tokens,
        .samples = p->samples,
        .passed = p->passed,
        .skipped = p->skipped,
        .skipped_in_row = run->skipped_in_row,
        .loss = run->last_loss,
        .heldout_loss = run->evaluated.step == p->step ? run->evaluated.loss : NAN,
        .best = run->best,
        .rollbacks = run->rollbacks,
        .recent = run->recent,
        .train_fingerprint = dataset_fingerprint(run->train_data),
        .heldout_fingerprint = run->heldout_data ? dataset_fingerprint(run->heldout_data) : 0,
        .tokenizer_fingerprint = dataset_tokenizer(run->train_data),
        .bos_id = ids.bos,
        .eod_id = ids.eod,
        .pad_id = ids.pad,
        .ranks = run->mesh.size,
        .dp = run->mesh.dp,
        .tp = run->mesh.tp,
        .ep = run->mesh.ep};
    note_sources(run->train_data, &s->manifest.state);
}

static int try_check_space(const struct saver *s, struct fault *fault)
{
    struct statvfs fs;
    if (statvfs(s->root, &fs) != 0) return 0; /* writing will tell */
    const double have = (double)fs.f_bavail * (double)fs.f_frsize;
    if (have >= (double)s->file_bytes) return 0;
    return fault_set(fault, CODE_IO, "%s: a checkpoint takes %lld bytes, %.0f are free", s->root,
                     (long long)s->file_bytes, have);
}

/* A save has failed on a rank: the lowest of them says why. Its directory, if it is still there
 * under its temporary name, is removed. */
static void give_up(struct run *run, struct saver *s, const struct fault *mine)
{
    struct fault fault = {0};
    char tmp[CKPT_PATH], why[1200];
    const int64_t step = s->manifest.state.step;
    const int lowest = comm_lowest_rank(&run->comm, mine->code != CODE_DONE);
    const bool ends = run->progress.step == run->cfg->train.steps || run->agreed.stop > 0;
    s->phase = SAVE_IDLE;
    s->failed = true;
    if (run->best.step == step) run->best = s->safe_best;
    if (run->mesh.rank == 0) store_try_drop(store_tmp_path(tmp, s->root, step), &fault);
    snprintf(why, sizeof why, "checkpoint of step %lld: %s", (long long)step, mine->why);
    /* Numbers that are not finite are no matter of the disk. */
    const bool spoiled = comm_lowest_rank(&run->comm, mine->code == CODE_INTERNAL) < run->mesh.size;
    if (spoiled || run->cfg->checkpoint.on_error == ON_ERROR_STOP)
        AGREE(MPI_COMM_WORLD, mine->code == CODE_DONE, mine->code, why);
    if (run->mesh.rank == lowest) warn_line("%s%s", why, ends ? "" : "; training continues");
}

void save_start(struct run *run)
{
    struct saver *s = run->saver;
    struct fault fault = {0};
    save_wait(run);
    place_at("checkpoint");
    s->start_s = s->last_s = clock_s();
    run->new_best = false;
    note_state(run, s);
    owner_check(run->owner);
    if (run->mesh.rank == 0 && !try_check_space(s, &fault))
        store_try_begin(s->root, run->progress.step, &fault);
    if (comm_lowest_rank(&run->comm, fault.code != CODE_DONE) < run->mesh.size) {
        give_up(run, s, &fault);
        return;
    }
    take_snapshot(run);
    s->phase = SAVE_WRITING;
    store_tmp_path(s->writer.dir, s->root, run->progress.step);
    writer_start(&s->writer, run->mesh.rank == 0 ? &s->layout : NULL);
    s->stall_s = clock_s() - s->start_s;
}

/* Boxes of all ranks in the order of their tensors, at rank 0. */
static void gather_boxes(struct run *run, struct saver *s)
{
    s->manifest.state.param_hash = comm_sum_hash(&run->comm, s->writer.param_hash);
    mesh_gather(s->writer.box, sizeof *s->writer.box, s->writer.n, s->all_box, s->n_boxes,
                "boxes of a checkpoint");
    if (run->mesh.rank != 0) return;
    struct ckpt_tensor *tensor = s->manifest.tensor;
    for (int i = 0; i < s->manifest.n_tensors; i++) tensor[i].n_boxes = 0;
    for (int i = 0; i < s->n_all; i++) tensor[s->all_box[i].tensor].n_boxes++;
    for (int i = 0, at = 0; i < s->manifest.n_tensors; at += tensor[i++].n_boxes)
        tensor[i].first_box = at;
    for (int i = 0; i < s->manifest.n_tensors; i++) tensor[i].n_boxes = 0;
    for (int i = 0; i < s->n_all; i++) {
        struct ckpt_tensor *t = &tensor[s->all_box[i].tensor];
        s->manifest.box[t->first_box + t->n_boxes++] = s->all_box[i];
    }
}

bool save_lost(const struct run *run)
{
    const struct saver *s = run->saver;
    if (!s || !s->failed) return false;
    if (run->mesh.rank == 0)
        warn_line("the run is done, but its last checkpoint could not be written: %s resumes after "
                  "step %lld",
                  run->resumes_again ? "the same command" : "run.resume=auto",
                  s->last_step > 0 ? (long long)s->last_step : 0LL);
    return true;
}

void save_is_at(struct run *run, int64_t step)
{
    if (!run->saver) return;
    run->saver->last_step = step;
    run->saver->safe_best = run->best;
}

static void finish(struct run *run, struct saver *s)
{
    s->phase = SAVE_IDLE;
    s->failed = false;
    s->last_step = s->manifest.state.step;
    s->safe_best = s->manifest.state.best;
    metrics_checkpoint(run->metrics, &(struct checkpoint_report){
                                         .step = s->last_step,
                                         .bytes = s->file_bytes,
                                         .stall_s = s->stall_s,
                                         .write_s = s->writer.safe_s - s->start_s - s->stall_s});
}

void save_advance(struct run *run)
{
    struct saver *s = run->saver;
    if (!s || s->phase == SAVE_IDLE || run->agreed.save_busy > 0) return;
    writer_join(&s->writer);
    if (run->agreed.save_failed > 0) {
        give_up(run, s, &s->writer.fault);
    } else if (s->phase == SAVE_WRITING) {
        const struct config_checkpoint *c = &run->cfg->checkpoint;
        gather_boxes(run, s);
        s->phase = SAVE_PUBLISHING;
        const struct ckpt_state *state = &s->manifest.state;
        /* While steps are skipped the older ones may be the last that are of use. */
        const struct store_keep keep = {.last = state->skipped_in_row > 0 ? 0 : c->keep_last,
                                        .every = c->keep_every,
                                        .best = state->best.tokens > 0 ? state->best.step : -1,
                                        .written = state->step};
        if (run->mesh.rank == 0) writer_publish(&s->writer, s->root, &s->manifest, &keep);
    } else {
        finish(run, s);
    }
}

void save_wait(struct run *run)
{
    static const struct timespec pause = {.tv_nsec = 2000000};
    struct saver *s = run->saver;
    while (s && s->phase != SAVE_IDLE) {
        place_at("checkpoint");
        nanosleep(&pause, NULL);
        run_agree(run);
        save_advance(run);
    }
    comm_take_count(&run->comm); /* of no step */
}

bool save_now(struct run *run)
{
    if (!run->saver) return false;
    save_wait(run);
    if (run->saver->last_step == run->progress.step) return true;
    save_start(run);
    save_wait(run);
    return run->saver->last_step == run->progress.step;
}
