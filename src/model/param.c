/*
 * param.c - builds the parameter table from the config. Names: Hugging Face DeepseekV3ForCausalLM;
 * MTP module k is layer num_hidden_layers + k, as in the released checkpoint.
 */
#include "model/param.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD_ALIGN = 64 }; /* elements; shards start on cache lines */

struct builder {
    struct param_table *table;
    const struct config *cfg;
    const struct mesh *mesh;
    int layer;
    bool mtp;
};

/* What one row needs beyond its name. */
struct row {
    enum param_part part;
    enum param_group group;
    int split_dim;
    int n_dims;
    int64_t dim[3];
};

static void set_local_shape(struct param *p, const struct mesh *mesh)
{
    p->n_all = p->n = 1;
    for (int d = 0; d < p->n_dims; d++) {
        const int ways = d == p->split_dim ? mesh->axis[p->split_axis].size : 1;
        CHECK(p->dim[d] % ways == 0, "%s: dimension %d of %lld does not divide over %d ranks",
              p->name, d, (long long)p->dim[d], ways);
        p->local_dim[d] = p->dim[d] / ways;
        p->n_all *= p->dim[d];
        p->n *= p->local_dim[d];
    }
}

__attribute__((format(printf, 3, 4))) static void add(struct builder *b, const struct row *row,
                                                      const char *fmt, ...)
{
    struct param_table *t = b->table;
    t->param = realloc(t->param, sizeof *t->param * (size_t)(t->n_params + 1));
    CHECK(t->param, "no memory for %d parameter rows", t->n_params + 1);
    struct param *p = &t->param[t->n_params++];
    *p = (struct param){.n_dims = row->n_dims,
                        .split_dim = row->split_dim,
                        .split_axis = row->group == GROUP_EXPERT ? AXIS_EP : AXIS_TP,
                        .group = row->group,
                        .part = row->part,
                        .layer = b->layer,
                        .mtp = b->mtp};
    memcpy(p->dim, row->dim, sizeof p->dim);
    int n = 0;
    if (b->layer >= 0) n = snprintf(p->name, sizeof p->name, "model.layers.%d.", b->layer);
    va_list args;
    va_start(args, fmt);
    n += vsnprintf(p->name + n, sizeof p->name - (size_t)n, fmt, args);
    va_end(args);
    CHECK(n < (int)sizeof p->name, "parameter name %s is too long", p->name);

    const bool is_norm = row->n_dims == 1;
    p->init = is_norm ? INIT_ONES : INIT_NORMAL;
    p->decay = !is_norm || b->cfg->optimizer.decay_all;
    p->dtype = is_norm || row->part == PART_ROUTER ? DTYPE_F32 : b->cfg->train.compute_dtype;
    set_local_shape(p, b->mesh);
}

static void add_norm(struct builder *b, enum param_part part, int64_t D, const char *name)
{
    const struct row row = {part, GROUP_REPLICATED, -1, 1, {D}};
    add(b, &row, "%s.weight", name);
}

static void add_matrix(struct builder *b, enum param_part part, enum param_group group,
                       int split_dim, int64_t out, int64_t in, const char *name)
{
    const struct row row = {part, group, split_dim, 2, {out, in}};
    add(b, &row, "%s.weight", name);
}

static void add_attention(struct builder *b)
{
    const struct config_model *m = &b->cfg->model;
    const int64_t D = m->hidden_size, H = m->num_attention_heads;
    const int64_t d_qk = m->qk_nope_head_dim + m->qk_rope_head_dim;
    const enum param_part part = PART_ATTENTION;
    if (m->q_lora_rank) {
        add_matrix(b, part, GROUP_REPLICATED, -1, m->q_lora_rank, D, "self_attn.q_a_proj");
        add_norm(b, part, m->q_lora_rank, "self_attn.q_a_layernorm");
        add_matrix(b, part, GROUP_TP_SPLIT, 0, H * d_qk, m->q_lora_rank, "self_attn.q_b_proj");
    } else {
        add_matrix(b, part, GROUP_TP_SPLIT, 0, H * d_qk, D, "self_attn.q_proj");
    }
    add_matrix(b, part, GROUP_REPLICATED, -1, m->kv_lora_rank + m->qk_rope_head_dim, D,
               "self_attn.kv_a_proj_with_mqa");
    add_norm(b, part, m->kv_lora_rank, "self_attn.kv_a_layernorm");
    add_matrix(b, part, GROUP_TP_SPLIT, 0, H * (m->qk_nope_head_dim + m->v_head_dim),
               m->kv_lora_rank, "self_attn.kv_b_proj");
    add_matrix(b, part, GROUP_TP_SPLIT, 1, D, H * m->v_head_dim, "self_attn.o_proj");
}

static void add_mlp(struct builder *b, enum param_part part, int64_t F, const char *prefix)
{
    const int64_t D = b->cfg->model.hidden_size;
    const struct row up = {part, GROUP_TP_SPLIT, 0, 2, {F, D}};
    const struct row down = {part, GROUP_TP_SPLIT, 1, 2, {D, F}};
    add(b, &up, "%s.gate_proj.weight", prefix);
    add(b, &up, "%s.up_proj.weight", prefix);
    add(b, &down, "%s.down_proj.weight", prefix);
}

static void add_moe(struct builder *b)
{
    const struct config_model *m = &b->cfg->model;
    const int64_t D = m->hidden_size, E = m->n_routed_experts, F = m->moe_intermediate_size;
    add_matrix(b, PART_ROUTER, GROUP_REPLICATED, -1, E, D, "mlp.gate");
    const struct row up = {PART_ROUTED_EXPERTS, GROUP_EXPERT, 0, 3, {E, F, D}};
    const struct row down = {PART_ROUTED_EXPERTS, GROUP_EXPERT, 0, 3, {E, D, F}};
    add(b, &up, "mlp.experts.gate_proj.weight");
    add(b, &up, "mlp.experts.up_proj.weight");
    add(b, &down, "mlp.experts.down_proj.weight");
    if (m->n_shared_experts)
        add_mlp(b, PART_SHARED_EXPERTS, F * m->n_shared_experts, "mlp.shared_experts");
}

static void add_layer(struct builder *b, int layer)
{
    const struct config_model *m = &b->cfg->model;
    b->layer = layer;
    b->mtp = layer >= m->num_hidden_layers;
    const int64_t D = m->hidden_size;
    if (b->mtp) {
        add_norm(b, PART_NORM, D, "enorm");
        add_norm(b, PART_NORM, D, "hnorm");
        add_matrix(b, PART_DENSE_MLP, GROUP_REPLICATED, -1, D, 2 * D, "eh_proj");
    }
    add_norm(b, PART_NORM, D, "input_layernorm");
    add_attention(b);
    add_norm(b, PART_NORM, D, "post_attention_layernorm");
    if (layer < m->first_k_dense_replace)
        add_mlp(b, PART_DENSE_MLP, m->intermediate_size, "mlp");
    else
        add_moe(b);
    if (b->mtp) add_norm(b, PART_NORM, D, "shared_head.norm");
}

static const enum axis reduce_axis_of[N_GROUPS] = {AXIS_DP, AXIS_WORLD, AXIS_EDP};

/* Place every row in its bucket; round each bucket up to equal shards. */
static void fill_buckets(struct param_table *t, const struct mesh *mesh)
{
    for (int i = 0; i < N_BUCKETS; i++) {
        struct bucket *b = &t->bucket[i];
        b->group = (enum param_group)(i / 2);
        b->dtype = i % 2 ? DTYPE_BF16 : DTYPE_F32;
        b->reduce_axis = reduce_axis_of[b->group];
    }
    for (int i = 0; i < t->n_params; i++) {
        struct param *p = &t->param[i];
        p->bucket = (int)p->group * 2 + (p->dtype == DTYPE_BF16);
        struct bucket *b = &t->bucket[p->bucket];
        p->offset = b->n;
        b->n += (p->n + SHARD_ALIGN - 1) / SHARD_ALIGN * SHARD_ALIGN;
    }
    for (int i = 0; i < N_BUCKETS; i++) {
        struct bucket *b = &t->bucket[i];
        const struct mesh_axis *axis = &mesh->axis[b->reduce_axis];
        const int64_t unit = (int64_t)SHARD_ALIGN * axis->size;
        b->n = (b->n + unit - 1) / unit * unit;
        b->n_shard = b->n / axis->size;
        b->shard0 = b->n_shard * axis->rank;
    }
}

void param_table_init(struct param_table *table, const struct config *cfg, const struct mesh *mesh)
{
    const struct config_model *m = &cfg->model;
    memset(table, 0, sizeof *table);
    struct builder b = {.table = table, .cfg = cfg, .mesh = mesh, .layer = -1};
    add_matrix(&b, PART_EMBEDDING, GROUP_TP_SPLIT, 0, m->vocab_size, m->hidden_size,
               "model.embed_tokens");
    for (int l = 0; l < m->num_hidden_layers + m->num_nextn_predict_layers; l++) add_layer(&b, l);
    b.layer = -1;
    b.mtp = false;
    add_norm(&b, PART_NORM, m->hidden_size, "model.norm");
    add_matrix(&b, PART_HEAD, GROUP_TP_SPLIT, 0, m->vocab_size, m->hidden_size, "lm_head");
    fill_buckets(table, mesh);
}

void param_table_init_whole(struct param_table *table, const struct config *cfg)
{
    const struct mesh_shape whole = {.size = 1, .tp = 1, .ep = 1, .ranks_per_node = 1};
    struct mesh mesh;
    mesh_plan(&mesh, &whole, 0);
    param_table_init(table, cfg, &mesh);
    mesh_free(&mesh);
}

void param_table_free(struct param_table *table)
{
    free(table->param);
    memset(table, 0, sizeof *table);
}

void param_table_place(struct param_table *table, struct arena *weights, struct arena *grads)
{
    for (int i = 0; i < N_BUCKETS; i++) {
        struct bucket *b = &table->bucket[i];
        if (!b->n) continue;
        b->w = arena_push(weights, (size_t)b->n * dtype_bytes(b->dtype));
        b->grad = arena_push(grads, (size_t)b->n * sizeof(float));
    }
    for (int i = 0; i < table->n_params; i++) {
        struct param *p = &table->param[i];
        const struct bucket *b = &table->bucket[p->bucket];
        p->w = elem(b->w, b->dtype, p->offset);
        p->grad = b->grad + p->offset;
    }
}

struct param *param_find(struct param_table *table, const char *name)
{
    for (int i = 0; i < table->n_params; i++)
        if (!strcmp(table->param[i].name, name)) return &table->param[i];
    return NULL;
}

int64_t param_global_index(const struct param *p, const struct mesh *mesh, int64_t i)
{
    if (p->split_dim < 0) return i;
    int64_t post = 1; /* elements behind one index of the split dimension */
    for (int d = p->split_dim + 1; d < p->n_dims; d++) post *= p->dim[d];
    const int64_t mine = p->local_dim[p->split_dim];
    const int64_t before = i / (mine * post);
    const int64_t inside = i % (mine * post);
    const int64_t first = mesh->axis[p->split_axis].rank * mine;
    return (before * p->dim[p->split_dim] + first) * post + inside;
}

bool param_in_shard(const struct param *p, const struct bucket *b, int64_t *first, int64_t *count)
{
    const int64_t lo = b->shard0 > p->offset ? b->shard0 : p->offset;
    const int64_t shard_end = b->shard0 + b->n_shard, param_end = p->offset + p->n;
    const int64_t hi = shard_end < param_end ? shard_end : param_end;
    *first = lo - p->offset;
    *count = hi > lo ? hi - lo : 0;
    return *count > 0;
}
