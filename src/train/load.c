/* load.c - see load.h. */
#include "train/load.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "ckpt/io.h"
#include "ckpt/store.h"
#include "train/pieces.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK = 1 << 20 }; /* elements read at once */

struct loader {
    struct run *run;
    const struct manifest *m;
    struct ckpt_reader reader;
    struct pieces pieces;
    bool weights_only;
    void *raw;    /* [BLOCK] as they lie in the file */
    void *values; /* [BLOCK] as they lie in memory */
};

static bool same_shape(const struct ckpt_tensor *a, const struct ckpt_tensor *b)
{
    return a->n_dims == b->n_dims && a->dim[0] == b->dim[0] && a->n == b->n;
}

/* Or a selection bias; not a moment. */
static bool is_weight(const struct ckpt_tensor *t)
{
    return !strncmp(t->name, "model/", 6);
}

/* The tensor to read for this one of the run; NULL: it is not taken. */
static const struct ckpt_tensor *source_of(const struct loader *ld, const struct ckpt_tensor *t)
{
    const struct ckpt_tensor *found = manifest_find(ld->m, t->name);
    if (ld->weights_only && !is_weight(t)) return NULL;
    return found && same_shape(found, t) ? found : NULL;
}

static void shape_text(const struct ckpt_tensor *t, char text[64])
{
    if (t->n_dims == 2)
        snprintf(text, 64, "[%" PRId64 ", %" PRId64 "]", t->dim[0], t->dim[1]);
    else
        snprintf(text, 64, "[%" PRId64 "]", t->dim[0]);
}

void load_check_tensors(const struct run *run, const struct manifest *m, struct err_list *errs)
{
    struct pieces pieces;
    pieces_init(&pieces, run);
    for (int i = 0; i < pieces.n_tensors; i++) {
        const struct ckpt_tensor *t = &pieces.tensor[i], *found = manifest_find(m, t->name);
        char have[64] = "missing", want[64];
        if (found && same_shape(found, t)) continue;
        if (found) shape_text(found, have);
        shape_text(t, want);
        err_add(errs, "%s: %s in the checkpoint, expected %s", t->name, have, want);
    }
    pieces_free(&pieces);
}

/* The box that was written just as this one is read, or NULL. */
static const struct ckpt_box *written_as(const struct manifest *m, const struct ckpt_box *box)
{
    const struct ckpt_tensor *t = &m->tensor[box->tensor];
    for (int i = 0; i < t->n_boxes; i++) {
        const struct ckpt_box *b = &m->box[t->first_box + i];
        if (b->base == box->base && b->first == box->first && b->run == box->run &&
            b->stride == box->stride && b->count == box->count)
            return b;
    }
    return NULL;
}

static void convert(void *to, enum dtype to_dt, const void *from, enum dtype from_dt, int64_t n)
{
    if (to_dt == from_dt) memcpy(to, from, (size_t)n * dtype_bytes(to_dt));
    for (int64_t i = 0; to_dt != from_dt && i < n; i++)
        if (to_dt == DTYPE_F32)
            ((float *)to)[i] = bf16_to_f32(((const bf16 *)from)[i]);
        else
            ((bf16 *)to)[i] = f32_to_bf16(((const float *)from)[i]);
}

/* box: the piece's, of the manifest's tensor. */
static int try_load_piece(struct loader *ld, const struct piece *piece, const struct ckpt_box *box,
                          struct fault *fault)
{
    const struct backend *be = ld->run->be;
    const enum dtype dt = ld->m->tensor[box->tensor].dtype;
    const struct ckpt_box *written = written_as(ld->m, box);
    XXH3_state_t *hash = XXH3_createState();
    CHECK(hash, "no memory to check a checkpoint");
    XXH3_64bits_reset(hash);
    struct ckpt_tensor as_loaded = ld->m->tensor[box->tensor];
    as_loaded.dtype = piece->dtype;
    struct fault odd = {0};
    int bad = 0;
    for (int64_t done = 0; !bad && done < box->count; done += BLOCK) {
        const int64_t left = box->count - done, n = left < BLOCK ? left : BLOCK;
        bad = ckpt_try_read_part(&ld->reader, box, done, n, ld->raw, fault);
        if (bad) break;
        XXH3_64bits_update(hash, ld->raw, (size_t)n * dtype_bytes(dt));
        convert(ld->values, piece->dtype, ld->raw, dt, n);
        if (odd.code == CODE_DONE)
            ckpt_try_finite(ld->reader.dir, &as_loaded, box, done, n, ld->values, &odd);
        be->copy(ld->run->stream, elem(piece->at, piece->dtype, done), ld->values,
                 (size_t)n * dtype_bytes(piece->dtype));
        be->stream_sync(ld->run->stream);
    }
    const uint64_t got = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    if (bad) return bad;
    if (written && written->hash != got) return ckpt_altered(&ld->reader, written, got, fault);
    if (odd.code != CODE_DONE) *fault = odd;
    return odd.code == CODE_DONE ? 0 : -1;
}

/* False: not of this checkpoint. box becomes the piece's, of the manifest's tensor. */
static bool find_box(const struct loader *ld, const struct piece *piece, struct ckpt_box *box)
{
    const struct ckpt_tensor *t = source_of(ld, &ld->pieces.tensor[piece->box.tensor]);
    *box = piece->box;
    if (t) box->tensor = (int)(t - ld->m->tensor);
    return t;
}

/* All ranks read boxes as they were written. */
static bool is_same_layout(const struct loader *ld)
{
    bool same = true;
    for (int i = 0; same && i < ld->pieces.n; i++) {
        struct ckpt_box box;
        if (find_box(ld, &ld->pieces.piece[i], &box)) same = written_as(ld->m, &box);
    }
    return comm_lowest_rank(&ld->run->comm, !same) == ld->run->mesh.size;
}

/* This rank's share of all that is in the checkpoint and not checked while it is loaded. */
static int try_verify(struct loader *ld, bool boxes, struct fault *fault)
{
    const int rank = ld->run->mesh.rank, size = ld->run->mesh.size;
    int bad = rank == 0 ? ckpt_try_verify_config(&ld->reader, fault) : 0;
    for (int i = rank; !bad && i < ld->m->n_files; i += size)
        bad = ckpt_try_verify_file(&ld->reader, i, fault);
    for (int i = rank; boxes && !bad && i < ld->m->n_boxes; i += size)
        bad = ckpt_try_verify_box(&ld->reader, i, fault);
    return bad;
}

/* Rank 0 gets the fault of the lowest rank that has one; 0: no rank has. */
static int agree_fault(struct run *run, struct fault *fault)
{
    const int size = run->mesh.size;
    const int lowest = comm_lowest_rank(&run->comm, fault->code != CODE_DONE);
    if (lowest == size) return 0;
    struct fault *all = mem_alloc(sizeof *all * (size_t)size, "faults of all ranks");
    mesh_gather(fault, sizeof *fault, 1, all, NULL, "faults of all ranks");
    if (run->mesh.rank == 0) *fault = all[lowest];
    if (fault->code == CODE_DONE) fault_set(fault, CODE_DATA, "rank %d: see its message", lowest);
    mem_free(all);
    return -1;
}

static void loader_init(struct loader *ld, struct run *run, const struct manifest *m,
                        const char *dir, bool weights_only)
{
    *ld = (struct loader){.run = run, .m = m, .weights_only = weights_only};
    ckpt_reader_init(&ld->reader, m, dir);
    pieces_init(&ld->pieces, run);
    ld->raw = mem_alloc(BLOCK * sizeof(float), "reading a checkpoint");
    ld->values = mem_alloc(BLOCK * sizeof(float), "reading a checkpoint");
}

static void loader_free(struct loader *ld)
{
    mem_free(ld->values);
    mem_free(ld->raw);
    pieces_free(&ld->pieces);
    ckpt_reader_free(&ld->reader);
}

/* Verified, then into memory. */
static int try_load(struct loader *ld, struct fault *fault)
{
    const bool same = is_same_layout(ld);
    *fault = (struct fault){0};
    int bad = try_verify(ld, !same, fault);
    for (int i = 0; !bad && i < ld->pieces.n; i++) {
        struct ckpt_box box;
        if (find_box(ld, &ld->pieces.piece[i], &box))
            bad = try_load_piece(ld, &ld->pieces.piece[i], &box, fault);
    }
    return agree_fault(ld->run, fault);
}

/* What has been read is what was written, on every rank. */
static int check_weights(struct run *run, const struct manifest *m, const char *dir,
                         struct fault *fault)
{
    uint64_t hash;
    double l2;
    optim_gather_weights(&run->optim);
    optim_zero_gradients(&run->optim);
    optim_param_hash(&run->optim, &hash, &l2);
    CHECK(optim_replicas_agree(&run->optim), "%s: the replicas of the weights differ after loading",
          dir);
    if (hash == m->state.param_hash) return 0;
    return fault_set(fault, CODE_DATA,
                     "%s: hash of the parameters %016" PRIx64 ", expected %016" PRIx64, dir, hash,
                     m->state.param_hash);
}

int load_try_all(struct run *run, const struct manifest *m, const char *dir, struct fault *fault)
{
    struct loader ld;
    loader_init(&ld, run, m, dir, false);
    optim_zero_weights(&run->optim);
    int bad = try_load(&ld, fault);
    loader_free(&ld);
    if (!bad) bad = check_weights(run, m, dir, fault);
    return bad;
}

int load_match_weights(const struct run *run, const struct manifest *m, struct err_list *missing,
                       struct err_list *unused)
{
    struct pieces pieces;
    bool *used = mem_alloc(sizeof *used * (size_t)m->n_tensors, "tensors of a checkpoint");
    int n = 0;
    pieces_init(&pieces, run);
    for (int i = 0; i < pieces.n_tensors; i++) {
        const struct ckpt_tensor *t = &pieces.tensor[i], *found = manifest_find(m, t->name);
        char have[64], want[64];
        if (!is_weight(t)) continue;
        if (found) used[found - m->tensor] = true;
        if (found && same_shape(found, t)) {
            n++;
            continue;
        }
        shape_text(t, want);
        if (found) shape_text(found, have);
        err_add(missing, "%s %s, %s in the checkpoint", t->name, want, found ? have : "not");
    }
    for (int i = 0; i < m->n_tensors; i++)
        if (is_weight(&m->tensor[i]) && !used[i]) err_add(unused, "%s", m->tensor[i].name);
    pieces_free(&pieces);
    mem_free(used);
    return n;
}

/* Equal on all ranks. */
static int check_complete(const struct loader *ld, const char *dir, struct fault *fault)
{
    for (int i = 0; i < ld->pieces.n_tensors; i++) {
        const struct ckpt_tensor *t = &ld->pieces.tensor[i], *found = manifest_find(ld->m, t->name);
        char have[64] = "missing", want[64];
        if (found && same_shape(found, t)) continue;
        if (found) shape_text(found, have);
        shape_text(t, want);
        return fault_set(fault, CODE_DATA, "%s: %s is %s, expected %s", dir, t->name, have, want);
    }
    return 0;
}

int load_try_compute(struct run *run, const struct manifest *m, const char *dir,
                     struct fault *fault)
{
    struct loader ld;
    loader_init(&ld, run, m, dir, true);
    pieces_free(&ld.pieces);
    pieces_init_compute(&ld.pieces, run);
    const int bad = check_complete(&ld, dir, fault) || try_load(&ld, fault);
    loader_free(&ld);
    return bad ? -1 : 0;
}

int load_try_weights(struct run *run, const struct manifest *m, const char *dir,
                     struct fault *fault)
{
    struct loader ld;
    loader_init(&ld, run, m, dir, true);
    const int bad = try_load(&ld, fault);
    loader_free(&ld);
    if (bad) return bad;
    optim_gather_weights(&run->optim);
    CHECK(optim_replicas_agree(&run->optim), "%s: the replicas of the weights differ after loading",
          dir);
    return 0;
}
