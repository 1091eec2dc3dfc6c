/*
 * optim_rig.h - a small model's parameter table with memory, communicators and optimizer on one
 * layout, for the tests of src/optim. All memory starts as NaN, so that what should be zero shows.
 */
#pragma once

#include "base/mem.h"
#include "base/rng.h"
#include "optim/optim.h"

#include <string.h>

enum { RIG_WEIGHTS, RIG_GRADS, RIG_OPTIM, RIG_STAGING, RIG_N_ARENAS };

struct rig {
    struct config cfg;
    struct mesh mesh;
    struct stream *stream;
    struct arena arena[RIG_N_ARENAS];
    struct comm comm;
    struct param_table params;
    struct optim opt;
};

struct rig_layout {
    int ranks, tp, ep;
};
static const struct rig_layout rig_layouts[] = {{1, 1, 1}, {2, 1, 1}, {2, 1, 2}, {2, 2, 1},
                                                {2, 2, 2}, {4, 1, 1}, {4, 1, 4}, {4, 2, 1},
                                                {4, 2, 2}, {4, 2, 4}, {4, 4, 2}};
enum { RIG_N_LAYOUTS = sizeof rig_layouts / sizeof *rig_layouts };

static inline struct config rig_config(void)
{
    struct config cfg = {0};
    cfg.run.seed = 1234;
    cfg.run.threads = 1;
    cfg.topology.tp = cfg.topology.ep = 1;
    cfg.model = (struct config_model){.vocab_size = 256,
                                      .hidden_size = 64,
                                      .num_hidden_layers = 2,
                                      .first_k_dense_replace = 1,
                                      .intermediate_size = 96,
                                      .moe_intermediate_size = 32,
                                      .num_attention_heads = 4,
                                      .q_lora_rank = 24,
                                      .kv_lora_rank = 16,
                                      .qk_nope_head_dim = 16,
                                      .qk_rope_head_dim = 8,
                                      .v_head_dim = 16,
                                      .n_routed_experts = 8,
                                      .n_shared_experts = 1,
                                      .num_experts_per_tok = 2,
                                      .num_nextn_predict_layers = 1,
                                      .initializer_range = 0.02};
    cfg.optimizer = (struct config_optimizer){
        .lr = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1.0};
    return cfg;
}

/* tp and ep come from cfg->topology; single: a mesh of one rank without communicators, whatever the
 * job's size. The rig must not move afterwards: it points into itself. */
static inline void rig_init(struct rig *rig, const struct config *cfg, bool single)
{
    static const char *const role[RIG_N_ARENAS] = {"weights", "gradients", "optimizer", "staging"};
    enum { BYTES = 8 << 20 };
    memset(rig, 0, sizeof *rig);
    rig->cfg = *cfg;
    const struct mesh_shape alone = {.size = 1, .tp = 1, .ep = 1, .ranks_per_node = 1};
    if (single)
        mesh_plan(&rig->mesh, &alone, 0);
    else
        mesh_init(&rig->mesh, cfg);
    rig->stream = backend_cpu.stream_create(1);
    for (int i = 0; i < RIG_N_ARENAS; i++)
        arena_init(&rig->arena[i], role[i], mem_alloc(BYTES, role[i]), BYTES, true);
    comm_init(&rig->comm, &rig->mesh, &backend_cpu, rig->stream, &rig->arena[RIG_STAGING]);
    param_table_init(&rig->params, &rig->cfg, &rig->mesh);
    param_table_place(&rig->params, &rig->arena[RIG_WEIGHTS], &rig->arena[RIG_GRADS]);
    optim_init(&rig->opt, &rig->cfg, &backend_cpu, rig->stream, &rig->comm, &rig->params,
               &rig->arena[RIG_OPTIM]);
    optim_init_weights(&rig->opt);
}

static inline void rig_free(struct rig *rig)
{
    optim_free(&rig->opt);
    param_table_free(&rig->params);
    comm_free(&rig->comm);
    for (int i = 0; i < RIG_N_ARENAS; i++) mem_free(rig->arena[i].base);
    backend_cpu.stream_destroy(rig->stream);
    mesh_free(&rig->mesh);
}

/* The gradient of an element of the whole job, key = rng_key(step, name): multiples of 1/64 below
 * 16, so that sums over ranks in F32 and sums of squares in F64 are exact in any order. */
static inline double rig_gradient(uint64_t key, int64_t global)
{
    const uint64_t x = rng_u64(key, (uint64_t)global);
    return ((double)(x % 2001) - 1000.0) / 64.0;
}

/* This rank's part of it: the parts of the members of the reduce axis differ, and add up. */
static inline void rig_add_gradients(struct rig *rig, int step)
{
    for (int i = 0; i < rig->params.n_params; i++) {
        struct param *p = &rig->params.param[i];
        const struct mesh_axis *axis = &rig->mesh.axis[rig->params.bucket[p->bucket].reduce_axis];
        const uint64_t key = rng_key((uint64_t)step, p->name);
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t g = param_global_index(p, &rig->mesh, j);
            const double part = (double)(g % 7 + 1) / 64.0;
            const double last = rig_gradient(key, g) - part * (axis->size - 1);
            p->grad[j] += (float)(axis->rank == axis->size - 1 ? last : part);
        }
    }
}
