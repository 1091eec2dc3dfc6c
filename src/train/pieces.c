/* pieces.c - see pieces.h. */
#include "train/pieces.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { N_KINDS = 3 };
static const char *const kind_name[N_KINDS] = {"model", "exp_avg", "exp_avg_sq"};

/* First all are counted, then the memory is taken, then they are filled in. */
struct builder {
    const struct run *run;
    bool compute;      /* the weights that this rank computes with, not its shards */
    struct pieces *to; /* tensor and piece NULL: counting */
};

static int add_tensor(struct builder *b, const struct ckpt_tensor *tensor)
{
    if (b->to->tensor) b->to->tensor[b->to->n_tensors] = *tensor;
    return b->to->n_tensors++;
}

static void add_piece(struct builder *b, const struct piece *piece)
{
    if (b->to->piece) b->to->piece[b->to->n] = *piece;
    b->to->n++;
}

/* Where the kind's elements of this bucket's shard begin. */
static void *shard_of(const struct builder *b, int kind, int bucket)
{
    const struct optim *opt = &b->run->optim;
    const struct bucket *of = &b->run->params.bucket[bucket];
    return kind == 0 ? of->master : kind == 1 ? opt->m[bucket] : opt->v[bucket];
}

static struct piece piece_of(const struct builder *b, const struct param *p, int kind, int tensor,
                             int64_t first, int64_t count)
{
    const struct bucket *of = &b->run->params.bucket[p->bucket];
    const enum dtype shard_dt = kind == 0 ? DTYPE_F32 : b->run->cfg->optimizer.moments_dtype;
    const enum dtype dt = b->compute ? p->dtype : shard_dt;
    return (struct piece){
        .box = {.tensor = tensor, .count = count},
        .at = b->compute ? elem(p->w, dt, first)
                         : elem(shard_of(b, kind, p->bucket), dt, p->offset + first - of->shard0),
        .dtype = dt,
        .param = p,
        .first = first,
        .is_weight = kind == 0};
}

/* Local elements [first, first + count) of a matrix or norm, in runs when its columns are split. */
static void add_part(struct builder *b, const struct param *p, int kind, int tensor, int64_t first,
                     int64_t count)
{
    struct piece piece = piece_of(b, p, kind, tensor, first, count);
    struct ckpt_box *box = &piece.box;
    if (p->split_dim <= 0) {
        box->base = param_global_index(p, &b->run->mesh, first);
        box->run = box->stride = count;
    } else {
        box->run = p->local_dim[1];
        box->stride = p->dim[1];
        box->base = param_global_index(p, &b->run->mesh, 0) + first / box->run * box->stride;
        box->first = first % box->run;
    }
    add_piece(b, &piece);
}

/* The same of experts [E_local, out, in]: a tensor each, of which the first is `tensor`. */
static void add_expert_parts(struct builder *b, const struct param *p, int kind, int tensor,
                             int64_t first, int64_t count)
{
    const int64_t each = p->dim[1] * p->dim[2];
    const int64_t e0 = b->run->mesh.axis[p->split_axis].rank * p->local_dim[0];
    for (int64_t at = first; at < first + count;) {
        const int64_t inside = at % each, left = first + count - at;
        const int64_t n = left < each - inside ? left : each - inside;
        struct piece piece = piece_of(b, p, kind, tensor + (int)(e0 + at / each), at, n);
        piece.box.base = inside;
        piece.box.run = piece.box.stride = n;
        add_piece(b, &piece);
        at += n;
    }
}

/* Which local elements of p are this rank's; false: none. */
static bool part_of(const struct builder *b, const struct param *p, int64_t *first, int64_t *count)
{
    if (!b->compute) return param_in_shard(p, &b->run->params.bucket[p->bucket], first, count);
    *first = 0;
    *count = p->n;
    return true;
}

static void add_matrix(struct builder *b, const struct param *p, int kind, enum dtype dt)
{
    struct ckpt_tensor t = {.dtype = dt, .n_dims = p->n_dims, .n = p->n_all};
    int64_t first, count;
    snprintf(t.name, sizeof t.name, "%s/%s", kind_name[kind], p->name);
    for (int d = 0; d < p->n_dims; d++) t.dim[d] = p->dim[d];
    const int tensor = add_tensor(b, &t);
    if (part_of(b, p, &first, &count)) add_part(b, p, kind, tensor, first, count);
}

/* ...mlp.experts.gate_proj.weight [E, out, in] is ...mlp.experts.7.gate_proj.weight [out, in]. */
static void add_experts(struct builder *b, const struct param *p, int kind, enum dtype dt)
{
    struct ckpt_tensor t = {
        .dtype = dt, .n_dims = 2, .dim = {p->dim[1], p->dim[2]}, .n = p->dim[1] * p->dim[2]};
    int64_t first, count;
    const char *rest = strstr(p->name, "experts.");
    CHECK(rest, "%s is not an expert tensor name", p->name);
    rest += strlen("experts.");
    const int n_before = (int)(rest - p->name), tensor = b->to->n_tensors;
    for (int64_t e = 0; e < p->dim[0]; e++) {
        snprintf(t.name, sizeof t.name, "%s/%.*s%lld.%s", kind_name[kind], n_before, p->name,
                 (long long)e, rest);
        add_tensor(b, &t);
    }
    if (part_of(b, p, &first, &count)) add_expert_parts(b, p, kind, tensor, first, count);
}

/* One [E] a MoE layer, MTP modules included. */
static void add_biases(struct builder *b)
{
    const struct model *m = &b->run->model;
    const struct param_table *params = &b->run->params;
    if (!config_experts_biased(&b->run->cfg->model)) return;
    struct ckpt_tensor t = {.dtype = DTYPE_F32, .n_dims = 1, .dim = {m->E}, .n = m->E};
    int layer = 0;
    for (int i = 0; i < params->n_params; i++) {
        const struct param *p = &params->param[i];
        if (p->part != PART_ROUTER) continue;
        snprintf(t.name, sizeof t.name, "model/%.*s.e_score_correction_bias",
                 (int)(strlen(p->name) - strlen(".weight")), p->name);
        struct piece piece = {.box = {.run = m->E, .stride = m->E, .count = m->E},
                              .at = m->bias + (int64_t)layer++ * m->E,
                              .dtype = DTYPE_F32,
                              .shared = true};
        piece.box.tensor = add_tensor(b, &t);
        add_piece(b, &piece);
    }
    CHECK(layer == m->n_moe, "%d routers in %d MoE layers", layer, m->n_moe);
}

static void add_all(struct builder *b)
{
    b->to->n = b->to->n_tensors = 0;
    for (int kind = 0; kind < (b->compute ? 1 : N_KINDS); kind++) {
        const enum dtype dt = kind == 0 ? DTYPE_F32 : b->run->cfg->optimizer.moments_dtype;
        for (int i = 0; i < b->run->params.n_params; i++) {
            const struct param *p = &b->run->params.param[i];
            (p->group == GROUP_EXPERT ? add_experts : add_matrix)(b, p, kind, dt);
        }
        if (kind == 0) add_biases(b);
    }
}

static void build(struct pieces *pieces, const struct run *run, bool compute)
{
    struct builder b = {.run = run, .compute = compute, .to = pieces};
    *pieces = (struct pieces){0};
    add_all(&b);
    pieces->tensor =
        mem_alloc(sizeof *pieces->tensor * (size_t)pieces->n_tensors, "tensors of a checkpoint");
    pieces->piece = mem_alloc(sizeof *pieces->piece * (size_t)pieces->n, "pieces of a checkpoint");
    add_all(&b);
}

void pieces_init(struct pieces *pieces, const struct run *run)
{
    build(pieces, run, false);
}

void pieces_init_compute(struct pieces *pieces, const struct run *run)
{
    build(pieces, run, true);
}

void pieces_free(struct pieces *pieces)
{
    mem_free(pieces->tensor);
    mem_free(pieces->piece);
    *pieces = (struct pieces){0};
}
