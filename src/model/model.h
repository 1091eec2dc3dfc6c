/*
 * model.h - the DeepSeek-V3 transformer: forward and backward of one micro-batch on this rank. A
 * layer is a list of phases, which model_forward walks one way and model_backward the other; in a
 * plan pass the same walk only counts memory.
 *
 * Legend of the whole project
 *   B sequences, T tokens a sequence, D model width, H heads, E routed experts, K experts a token,
 *   F expert width, V vocabulary, L layers, M rows that arrive at this rank's experts.
 *   N tokens of this rank between blocks = B * T / tp: the flattened [B * T] tokens of a
 * micro-batch are cut into tp equal parts (sequence parallelism). Na = N * tp = B * T: all of them.
 *   R = r_q + r_kv + d_rope: the latents of MLA side by side, [normed q latent | normed kv latent |
 *   rotated k_pe]. A suffix _l marks what is local to a tp or ep rank (H_l, E_l).
 *   dt is train.compute_dtype; parameters' gradients and everything in the router are F32.
 *
 * Source: DeepSeek-V3 technical report (arXiv 2412.19437) section 2; Hugging Face
 * DeepseekV3ForCausalLM for names and layouts.
 */
#pragma once

#include "base/arena.h"
#include "comm/comm.h"
#include "kernels/backend.h"
#include "model/param.h"

struct model;
struct layer;
struct flow;

/* One step of a layer. The kind is for a walk over two micro-batches, which may compute one while
 * the other is exchanged; today's walk takes them one after the other. */
enum phase_kind { PHASE_COMPUTE, PHASE_EXCHANGE };
struct phase {
    const char *name;
    enum phase_kind kind;
    void (*fwd)(struct model *m, struct layer *l, struct flow *f);
    void (*bwd)(struct model *m, struct layer *l, struct flow *f);
};

/* Parameters of a SwiGLU MLP, dense or shared; width F over all tp ranks. */
struct mlp_params {
    struct param *gate, *up, *down;
    int F;
};

struct attention_params {
    struct param *norm, *q_a, *q_norm, *q_b; /* q_a, q_norm NULL: q_b is q_proj */
    struct param *kv_a, *kv_norm, *kv_b, *o;
};

enum { MAX_PHASES = 7 };
struct layer {
    int index; /* num_hidden_layers + k for MTP module k */
    int moe;   /* which MoE layer, 0 .. n_moe - 1; -1: dense */
    int mtp;   /* depth 1 .. n_mtp; 0: main model */
    const struct phase *phases[MAX_PHASES];
    int n_phases;
    struct param *ffn_norm;
    struct attention_params attention;
    struct mlp_params mlp; /* dense MLP, or shared experts (gate NULL: none) */
    struct param *router, *expert_gate, *expert_up, *expert_down;
    struct param *enorm, *hnorm, *eh_proj; /* MTP modules */
};

/* What forward keeps for backward. Pointers into the flow's stack. */
struct mlp_acts {
    const void *x_all; /* [Na, D] */
    void *gate, *up;   /* [Na, F_l] */
};

struct exchange {                   /* one layer's expert exchange, see exchange.h */
    int64_t M;                      /* rows at this rank's experts */
    int64_t *send_rows, *recv_rows; /* host [ep] */
    int64_t *offset;                /* host [E_l + 1]: rows of each local expert */
    int32_t *from; /* [M] grouped row j is received row from[j]; NULL when ep is 1 */
    int32_t *to;   /* [M] its inverse */
};

struct layer_acts {
    size_t mark; /* the stack before this layer */
    /* MTP input */
    const void *hidden; /* [N, D] what the previous stage handed over */
    void *embedded;     /* [N, D] */
    void *joined;       /* [N, 2 D] normed embedding, normed hidden */
    float *rstd_e, *rstd_h;
    /* attention */
    const void *h_in;   /* [N, D] */
    void *n1;           /* [N, D] */
    const void *n1_all; /* [Na, D], only without q_lora_rank */
    void *raw;          /* [N, R] latents before their norms */
    void *latent_all;   /* [Na, R] */
    void *q, *kv, *out; /* [Na, H_l, d_qk], [Na, H_l, d_nope + d_v], [Na, H_l, d_v] */
    float *rstd1, *rstd_q, *rstd_kv, *lse;
    /* feed forward */
    void *h_mid; /* [N, D] */
    void *n2;    /* [N, D] */
    float *rstd2;
    struct mlp_acts mlp;
    /* router */
    float *score, *weight, *coef; /* [N, E], [N, K], [B, E] or NULL */
    int32_t *expert, *order, *place;
    int64_t *count; /* [E] rows this rank sends to each expert */
    /* experts */
    struct exchange ex;
    void *rows_in, *gate, *up; /* [M, D], [M, F], [M, F] */
    void *rows_out;            /* [M, D]; released by combine */
    size_t rows_out_mark;
    void *rows_back; /* [N * K, D] in sorted order; backward: gradients, out and then in */
    /* backward, between phases */
    float *dweight; /* [N, K] */
    void *drows;    /* [M, D] by rows_out, then by rows_in; rows_back when ep is 1 */
    void *dn2;      /* [N, D] */
};

/* Output of the main model (stage 0) or of an MTP module (stage k). */
struct stage_out {
    const void *h; /* [N, D] after the last layer */
    void *n;       /* [N, D] after the stage's norm */
    void *dn;      /* [N, D] gradient by n, from the loss and from the next stage */
    float *rstd;
};

/* A micro-batch on its way through the model. */
struct flow {
    bool train; /* false: nothing is counted or kept for backward */
    int B, T;
    int64_t N, Na;
    int32_t *doc_buffer;         /* [Na] */
    const int32_t *doc_start;    /* doc_buffer when attention stays inside documents, else NULL */
    int32_t *label[1 + MAX_MTP]; /* [Na] -1: none */
    int32_t *input[1 + MAX_MTP]; /* [Na] tokens that stage k embeds; -1: none */
    float *token_loss[1 + MAX_MTP]; /* [N] of this rank's tokens */
    void *h;                        /* [N, D] hidden state so far */
    void *dh;                       /* [N, D] its gradient; in evaluation, which has none, where h
                                       waits between layers */
    struct layer_acts *acts;        /* [n_layers] */
    struct stage_out stage[1 + MAX_MTP];
    float loss_scale[1 + MAX_MTP]; /* weight of one token's loss in the step's loss */
    float balance_scale;           /* weight of one sequence's balance term */
};

/* The latents of a sequence that grows token by token; see model_decode. */
struct latent_cache {
    int capacity;  /* tokens; 0: no memory for any */
    int past;      /* tokens before those of this call */
    bool on;       /* the walk is model_decode's */
    void *latent;  /* [num_hidden_layers, rows, r_kv + d_rope], rows as cache_rows says */
    float *logits; /* [tp, V_l] */
};

struct model {
    const struct config *cfg;
    const struct mesh *mesh;
    const struct backend *be; /* NULL: a plan pass, arenas count and nothing is computed */
    struct stream *stream;
    struct comm *comm;
    struct param_table *params;

    enum dtype dt;
    int D, H_l, E, E_l, K, F, V_l, R, r_q, r_kv, d_nope, d_rope, d_v;
    float softmax_scale;
    int n_layers, n_moe, n_mtp;
    struct layer *layer; /* [n_layers] */
    struct param *embed, *final_norm, *head;
    struct param *stage_norm[1 + MAX_MTP];

    struct arena state, stack, scratch;
    struct flow flow;
    struct latent_cache cache;
    int n_pos;                /* positions of rope_table: T, or more when more are generated */
    float *rope_table;        /* [n_pos, d_rope / 2, 2] */
    int32_t *forced;          /* [N, K] or NULL: debug.balanced_routing */
    float *bias;              /* [n_moe, E] selection bias */
    int64_t *expert_count;    /* [n_moe, E] tokens of this step so far, this rank's */
    double *loss_sum;         /* [1 + n_mtp] sums of token losses; then one: the balance loss */
    int64_t *n_bad_loss;      /* token losses that are not finite, of all stages */
    int32_t *h_label;         /* host scratch for labels */
    struct exchange expected; /* plan pass: M, send_rows and recv_rows of every layer; owned */
};

/* Bytes of the model's arenas. */
struct model_memory {
    size_t state, stack, scratch;
};

/* Everything the model borrows; all of it outlives the model. */
struct model_parts {
    const struct config *cfg;
    const struct mesh *mesh;
    const struct backend *be; /* NULL: a plan pass */
    struct stream *stream;
    struct comm *comm;
    struct param_table *params;
    int cache_tokens;   /* of model_decode; 0: it will not be called */
    bool worst_routing; /* plan pass: all that can arrive at this rank's experts; else balanced */
};

/* Takes its arenas from the backend, of the sizes in memory; in a plan pass they count, and memory
 * may be NULL. Selection biases start at 0. */
void model_init(struct model *m, const struct model_parts *parts,
                const struct model_memory *memory);
void model_free(struct model *m);

/*
 * Make flow hold a micro-batch: token, doc_start host [B, T + 1] (doc_start used when
 * data.document_mask), valid [B] false: a padding sequence without labels; NULL: all valid.
 */
void model_load(struct model *m, const int32_t *token, const int32_t *doc_start, const bool *valid);

/* How many labels each stage has in such a micro-batch: n_label [1 + n_mtp] +=. Host arithmetic. */
void model_count_labels(const struct model *m, const int32_t *token, const int32_t *doc_start,
                        const bool *valid, int64_t *n_label);

/* Forward of the loaded micro-batch; adds to loss_sum, n_bad_loss and, when train, expert_count and
 * the balance loss, and leaves what backward needs on the stack. Collective over tp and ep. */
void model_forward(struct model *m, bool train);

/* Generation: n more tokens of one sequence, n at most B * T and capacity - past, behind `past`
 * tokens of earlier calls (0: a new sequence), of which only the latents of MLA are kept. logits,
 * host [V]: of the token that follows, on every rank. All ranks give the same tokens. Counts and
 * losses do not change. Collective over tp and ep; finished on return. */
void model_decode(struct model *m, const int32_t *token, int n, int past, float *logits);

/* Backward of the last model_forward(train); adds to all gradients and empties the stack. */
void model_backward(struct model *m);

/* The step of the routers' selection biases, which no gradient moves: adds up expert_count over all
 * ranks into total [n_moe, E] (host), moves each bias by speed (0: none) against its expert's load,
 * and zeroes the counts. Collective over world. */
void model_update_router_bias(struct model *m, int64_t *total, double speed);

/* --- phases and pieces, one file each --- */
extern const struct phase phase_mtp_input, phase_attention, phase_mlp, phase_route, phase_dispatch,
    phase_shared, phase_experts, phase_combine;

/* x [N, D] = rows of the embedding for the tokens of this rank, id [Na]. */
void embed_fwd(struct model *m, void *x, const int32_t *id);
void embed_bwd(struct model *m, const void *dx, const int32_t *id);

/* flow.h from the embeddings of input[0] through all layers of the main model. */
void model_main_fwd(struct model *m);

/* out [N, D] = MLP(x [N, D]). */
void mlp_fwd(struct model *m, const struct mlp_params *p, struct mlp_acts *acts, void *out,
             const void *x);
/* dx [N, D] from dy [N, D]; gradients of the weights accumulate. Overwrites acts. */
void mlp_bwd(struct model *m, const struct mlp_params *p, struct mlp_acts *acts, void *dx,
             const void *dy);

/* Loss of stage k from its n [N, D] in chunks: token_loss, loss_sum; when f->train also dn and the
 * head's gradient. */
void loss_head(struct model *m, struct flow *f, int k);

/* Balanced routing (balanced.c): expert [N, K] of this rank's tokens; rows this rank's tokens send
 * to each member of the ep axis and rows its experts receive from each, [ep]. */
void balanced_experts(const struct model *m, int32_t *expert);
void balanced_rows(const struct config *cfg, const struct mesh *mesh, int64_t *send_rows,
                   int64_t *recv_rows);

/* The attention core of model_decode (decode.c): the latents of all new tokens, [Na, R], go into
 * the cache; out from it. */
struct layer_acts;
void decode_core(struct model *m, const struct layer *l, const struct layer_acts *a);

/* Tables and scales of rotary embedding (rope.c): plain or YaRN. */
void rope_fill_table(float *table, const struct config_model *cfg, int T);
double rope_softmax_scale(const struct config_model *cfg);

/* --- memory of the flow --- */
static inline void *push(struct model *m, int64_t n, enum dtype dt)
{
    return arena_push(&m->stack, (size_t)n * dtype_bytes(dt));
}
static inline void *scratch(struct model *m, int64_t n, enum dtype dt)
{
    return arena_push(&m->scratch, (size_t)n * dtype_bytes(dt));
}

/* --- where this rank's part lies, and the norm over the model width that every block begins with
 * --- */
static inline int64_t first_token(const struct model *m) /* of the [B * T] of a micro-batch */
{
    return m->flow.N * m->mesh->axis[AXIS_TP].rank;
}
static inline int first_vocab_row(const struct model *m) /* of the V rows of embedding and head */
{
    return m->V_l * m->mesh->axis[AXIS_TP].rank;
}
/* Of a layer's cache: padding of the last call may stand behind its tokens. */
static inline int cache_rows(const struct model *m)
{
    return m->cache.capacity > 0 ? m->cache.capacity + m->mesh->tp - 1 : 0;
}
/* Token n of the micro-batch has position (first_position + n) % positions. */
static inline int64_t first_position(const struct model *m)
{
    return m->cache.on ? m->cache.past : 0;
}
static inline int positions(const struct model *m)
{
    return m->cache.on ? m->n_pos : m->flow.T;
}
static inline int64_t sorted_rows(const struct model *m) /* rows this rank sends to experts */
{
    return m->flow.N * m->K;
}
static inline struct norm_shape hidden_norm(const struct model *m)
{
    const struct norm_shape shape = {m->flow.N, m->D, 0, 0, (float)m->cfg->model.rms_norm_eps};
    return shape;
}

/* With tp: all ranks' rows of x [n / tp ...] in new scratch or stack memory; without: x itself. */
static inline const void *gather_tp(struct model *m, struct arena *arena, const void *x, int64_t n)
{
    if (m->mesh->tp == 1) return x;
    void *all = arena_push(arena, (size_t)n * (size_t)m->mesh->tp * dtype_bytes(m->dt));
    comm_all_gather(m->comm, AXIS_TP, all, x, n, m->dt);
    return all;
}
