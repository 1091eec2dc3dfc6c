/*
 * backend.h - the table between the model and the machine: memory, streams, events, copies, and one
 * function per operation. The model never knows which backend it runs on. backend_cpu is always
 * there (kernels/cpu/<op>.c, the definition of correct), backend_cuda when built.
 *
 * For every operation: pointers are backend memory, borrowed until the stream reaches the call; no
 * two may overlap unless said; N, rows and counts may be 0; work is enqueued on s (the CPU backend
 * has finished on return); the result is the same bit for bit on every call and does not depend on
 * the number of threads' order of arrival. dt is F32 or BF16: arithmetic is F32 inside and rounded
 * once per element on the way out. Strides count elements; a stride of 0 means contiguous.
 * Legend (src/model/model.h): N tokens, D width, H heads, E experts, K experts per token, V
 * vocabulary.
 */
#pragma once

#include "base/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stream;
struct event;
struct arena;

/* y [N, out] = x [N, in] * w [out, in] transposed; rows of x and y may lie further apart. */
struct linear_shape {
    int64_t N;
    int in, out;
    int64_t x_stride, y_stride; /* 0: in, out */
};

/* n_groups products in one call: rows offset[g] .. offset[g+1] of x and y with matrix g of w
 * [n_groups, out, in]. offset [n_groups + 1] is host memory; groups may be empty. */
struct grouped_shape {
    int n_groups;
    const int64_t *offset;
    int in, out;
};

struct norm_shape {
    int64_t N;
    int D;
    int64_t x_stride, y_stride; /* 0: D */
    float eps;
};

/* heads vectors of d_rope elements in every row: element (n, h) starts at
 * n * row_stride + h * head_stride + offset. */
struct rope_shape {
    int64_t N;
    int heads, d_rope;
    int64_t row_stride;
    int head_stride, offset;
};

/* q [B*T, H, d_nope + d_rope], kv [B*T, H, d_nope + d_v] (per head: nope part of k, then v),
 * k_pe: row n at n * k_pe_stride, d_rope elements shared by all heads, out [B*T, H, d_v]. */
struct attention_shape {
    int64_t B;
    int T, H, d_nope, d_rope, d_v;
    int64_t k_pe_stride;
    float scale;
};

/* Attention of n new tokens over the latents of a sequence, the new ones included: token i sees
 * rows 0 .. past + i. MLA's absorbed form: keys and values are never unpacked. */
struct cached_shape {
    int64_t n, past;
    int H, r_kv, d_nope, d_rope, d_v;
    float scale;
};

/* Added to a token's sum of scores before dividing by it: all of them may have underflowed to 0. */
#define ROUTER_SUM_EPS 1e-20f

enum router_score { ROUTER_SIGMOID, ROUTER_SOFTMAX };
enum router_group { ROUTER_GROUP_NONE, ROUTER_GROUP_TOP2_SUM, ROUTER_GROUP_MAX };
struct router_shape {
    int64_t N;
    int E, K;
    enum router_score score;
    enum router_group group;
    int n_group, topk_group;
    bool normalise; /* weights of the chosen divided by their sum + ROUTER_SUM_EPS */
    float scale;    /* then multiplied by this */
};

/* The place of local tokens in their sequences: local token n is token first + n of the
 * micro-batch, and belongs to sequence (first + n) / T of B. */
struct sequence_span {
    int64_t first;
    int64_t B;
    int T;
};

/* From here on BF16 rounds to infinity. */
#define ADAMW_LIMIT 0x1.ffp127f

struct adamw_args {
    double lr, beta1, beta2, eps, weight_decay;
    double correction1, correction2; /* 1 - beta^t */
    double grad_scale;               /* clip coefficient, multiplied into every gradient */
};

struct backend {
    const char *name;

    /* --- memory, streams, events --- */
    void *(*alloc)(size_t bytes, const char *what); /* fatal when there is none */
    void (*free)(void *p);
    struct stream *(*stream_create)(int threads); /* threads: CPU backend only */
    void (*stream_destroy)(struct stream *s);
    void (*stream_sync)(struct stream *s);
    struct event *(*event_create)(void);
    void (*event_destroy)(struct event *e);
    void (*event_record)(struct event *e, struct stream *s);
    void (*event_wait)(struct stream *s, struct event *e);
    void (*copy)(struct stream *s, void *dst, const void *src, size_t bytes); /* any direction */
    void (*zero)(struct stream *s, void *p, size_t bytes);
    /* FLOP/s of dense F32 or BF16 products (as the linear operations run them) that this stream can
     * reach at best, by a measurement of about 50 ms. */
    double (*measure_peak)(struct stream *s, enum dtype dt);
    /* Bytes/s that this stream reads and writes at best in arrays far larger than the caches, by a
     * measurement of about 0.1 s. Allocates. */
    double (*measure_bandwidth)(struct stream *s);

    /* --- elementwise --- */
    void (*cast)(struct stream *s, void *dst, enum dtype dst_dt, const void *src, enum dtype src_dt,
                 int64_t n);
    /* y = a + b; y may be a or b. */
    void (*add)(struct stream *s, void *y, const void *a, enum dtype dt, const void *b,
                enum dtype b_dt, int64_t n);
    /* dst row n (cols elements of dt at n * dst_stride) = src row n. */
    void (*copy_rows)(struct stream *s, void *dst, int64_t dst_stride, const void *src,
                      int64_t src_stride, enum dtype dt, int64_t rows, int cols);
    /* *sum (F64, backend memory) = sum of x[i]^2 in F64, in a fixed order. A NaN or Inf in x makes
     * *sum not finite. */
    void (*sum_squares)(struct stream *s, double *sum, const float *x, int64_t n);
    /* *sum (F64) += sum of x[i], in a fixed order; *n_bad (I64) += how many are NaN or infinite. */
    void (*sum_add)(struct stream *s, double *sum, int64_t *n_bad, const float *x, int64_t n);

    /* --- dense and grouped products. y_dt: F32 or dt --- */
    void (*linear_fwd)(struct stream *s, void *y, enum dtype y_dt, const void *x, const void *w,
                       enum dtype dt, const struct linear_shape *shape);
    /* dx [N, in] = dy w, or dx += dy w when accumulate; all of dt */
    void (*linear_bwd_x)(struct stream *s, void *dx, const void *dy, const void *w, enum dtype dt,
                         const struct linear_shape *shape, bool accumulate);
    /* dw [out, in] F32 += dy^T x. dy_dt and x are dt. */
    void (*linear_bwd_w)(struct stream *s, float *dw, const void *dy, const void *x, enum dtype dt,
                         const struct linear_shape *shape);
    void (*grouped_fwd)(struct stream *s, void *y, const void *x, const void *w, enum dtype dt,
                        const struct grouped_shape *shape);
    void (*grouped_bwd_x)(struct stream *s, void *dx, const void *dy, const void *w, enum dtype dt,
                          const struct grouped_shape *shape, bool accumulate);
    void (*grouped_bwd_w)(struct stream *s, float *dw, const void *dy, const void *x, enum dtype dt,
                          const struct grouped_shape *shape);

    /* --- RMSNorm: y = x * rstd * g, rstd = 1 / sqrt(mean(x^2) + eps) (one rounding); g [D] F32,
     * rstd [N] F32. Backward: dx = or += (x and dy strides as x and y of the shape), dg [D] += ;
     * the sum over tokens in a fixed order --- */
    void (*rmsnorm_fwd)(struct stream *s, void *y, float *rstd, const void *x, const float *g,
                        enum dtype dt, const struct norm_shape *shape);
    void (*rmsnorm_bwd)(struct stream *s, void *dx, float *dg, const void *dy, const void *x,
                        const float *rstd, const float *g, enum dtype dt,
                        const struct norm_shape *shape, bool accumulate);

    /* --- RoPE, in place, on adjacent pairs (2i, 2i+1) as one complex number times
     * table[pos][i] = (cos, sin); inverse: times (cos, -sin), which is the backward.
     * table [n_pos, d_rope / 2, 2] F32; the position of row n is (first + n) % T --- */
    void (*rope)(struct stream *s, void *x, enum dtype dt, const float *table, int64_t first, int T,
                 const struct rope_shape *shape, bool inverse);

    /* --- causal attention in tiles with an online softmax; lse [B*T, H] F32, log-sum-exp of the
     * scaled scores. doc_start [B, T] i32 or NULL: token t sees keys doc_start[t] .. t of its
     * sequence (0 <= doc_start[t] <= t, non-decreasing). Backward writes dq, dkv (layouts of q,
     * kv) and dk_pe (rows at k_pe_stride, summed over the heads here) --- */
    void (*attention_fwd)(struct stream *s, void *out, float *lse, const void *q, const void *kv,
                          const void *k_pe, const int32_t *doc_start, enum dtype dt,
                          const struct attention_shape *shape);
    void (*attention_bwd)(struct stream *s, void *dq, void *dkv, void *dk_pe, const void *dout,
                          const void *out, const float *lse, const void *q, const void *kv,
                          const void *k_pe, const int32_t *doc_start, enum dtype dt,
                          const struct attention_shape *shape);

    /* out [n, H, d_v]; q [n, H, d_nope + d_rope], rotated; latent [past + n, r_kv + d_rope]: normed
     * kv latent, rotated k_pe; kv_b [H, d_nope + d_v, r_kv], the weight that makes a head's key and
     * value from the latent. Scores and sums in F32, one rounding of out. */
    void (*attention_cached)(struct stream *s, void *out, const void *q, const void *latent,
                             const void *kv_b, enum dtype dt, const struct cached_shape *shape);

    /* --- SwiGLU: y = silu(gate) * up, n elements, all of dt. Backward writes dgate, dup and, when
     * y is not NULL, y again; dgate may be gate, dup may be up, y may be dy --- */
    void (*swiglu_fwd)(struct stream *s, void *y, const void *gate, const void *up, enum dtype dt,
                       int64_t n);
    void (*swiglu_bwd)(struct stream *s, void *dgate, void *dup, void *y, const void *dy,
                       const void *gate, const void *up, enum dtype dt, int64_t n);

    /* --- embedding: rows row0 .. row0 + n_rows - 1 of the vocabulary are in table [n_rows, D];
     * any other id (-1 among them) gives a zero row and no gradient. dtable F32 += --- */
    void (*embedding_fwd)(struct stream *s, void *x, const void *table, const int32_t *id,
                          enum dtype dt, int64_t N, int D, int row0, int n_rows);
    void (*embedding_bwd)(struct stream *s, float *dtable, const void *dx, const int32_t *id,
                          enum dtype dt, int64_t N, int D, int row0, int n_rows);

    /* --- router (DeepSeek-V3 report 2.1.2). logits [N, E] F32 -> score [N, E] F32 (sigmoid, or
     * softmax over E), expert [N, K] i32 best first, weight [N, K] F32 from unbiased scores.
     * Choice by score + bias (bias [E] F32 or NULL), masked groups -inf, equal values to the lower
     * id. A NaN logit makes that token choose experts 0..K-1 with NaN weights. forced [N, K] i32 or
     * NULL: these experts instead of a choice. --- */
    void (*router_fwd)(struct stream *s, float *score, int32_t *expert, float *weight,
                       const float *logits, const float *bias, const int32_t *forced,
                       const struct router_shape *shape);
    /* dlogits [N, E] = through weight (dweight [N, K]) and through the balance loss: coef [B, E] is
     * its derivative by the normalised scores p = score / sum of scores, the same for every token
     * of a sequence; NULL: none. */
    void (*router_bwd)(struct stream *s, float *dlogits, const float *dweight, const float *score,
                       const int32_t *expert, const float *coef, const struct sequence_span *span,
                       const struct router_shape *shape);
    /* Sequence-wise balance statistics of the local tokens: p_sum [B, E] F32 = sum of p over the
     * local tokens of each sequence, n_top [B, E] i32 = how often each expert is among the top K
     * of the unbiased scores without groups. Both are overwritten. */
    void (*balance_stats)(struct stream *s, float *p_sum, int32_t *n_top, const float *score,
                          const struct sequence_span *span, const struct router_shape *shape);
    /* From p_sum and n_top over whole sequences: coef [B, E] = weight * f / T, and
     * *loss (F64) += weight * sum over B of sum_i f_i P_i, with f = E / (K T) n_top, P = p_sum / T.
     */
    void (*balance_loss)(struct stream *s, double *loss, float *coef, const float *p_sum,
                         const int32_t *n_top, int64_t B, int T, int E, int K, float weight);
    /* bias[e] += speed * sign(mean(count) - count[e]), exact in integers; centred: minus the mean
     * of these steps over the experts. */
    void (*bias_update)(struct stream *s, float *bias, const int64_t *count, int E, float speed,
                        bool centred);

    /* --- moving rows. sort_by_expert: a stable counting sort of expert [M] (M = N * K ids): order
     * [M] i32 = index into expert of the j-th row in sorted order, place [M] i32 its inverse, count
     * [E] i64 (overwritten). No id means "no expert": one outside 0 .. E - 1 ends the run. --- */
    void (*sort_by_expert)(struct stream *s, int32_t *order, int32_t *place, int64_t *count,
                           const int32_t *expert, int64_t M, int E);
    /* total[e] += count[e] */
    void (*count_add)(struct stream *s, int64_t *total, const int64_t *count, int E);
    /* dst [M, D]: row j = row index[j] / divisor of src. */
    void (*gather_rows)(struct stream *s, void *dst, const void *src, const int32_t *index,
                        int divisor, enum dtype dt, int64_t M, int D);
    /* y [N, D] = sum over k of weight[n, k] * rows[place[n * K + k]] (weight NULL: 1) + add0 + add1
     * (either may be NULL or y itself), summed in F32 in this order, rounded once. */
    void (*combine_fwd)(struct stream *s, void *y, const void *rows, const int32_t *place,
                        const float *weight, const void *add0, const void *add1, enum dtype dt,
                        int64_t N, int K, int D);
    /* dweight[n, k] = dot(dy[n], row place[n * K + k] of rows), that row of drows = weight[n, k] *
     * dy[n]; drows may be rows */
    void (*combine_bwd)(struct stream *s, void *drows, float *dweight, const void *dy,
                        const void *rows, const int32_t *place, const float *weight, enum dtype dt,
                        int64_t N, int K, int D);

    /* --- cross entropy over a vocabulary that is split over ranks: logits [n, V] F32 are columns
     * col0 .. col0 + V - 1. Between the steps max and sum, target are reduced over the ranks.
     *   1 max[n]  2 sum[n] = sum exp(l - max), target[n] = l at label - max if here, else 0
     *   3 loss[n] = log(sum) - target, dlogits[n, V] (dt; may be NULL, may be logits when F32) =
     *     (exp(l - max) / sum - (col == label)) * scale; a label < 0 gives loss 0 and a zero row
     * --- */
    void (*cross_entropy_max)(struct stream *s, float *max, const float *logits, int64_t n, int V);
    void (*cross_entropy_sum)(struct stream *s, float *sum, float *target, const float *logits,
                              const float *max, const int32_t *label, int64_t n, int V, int col0);
    void (*cross_entropy_loss)(struct stream *s, float *loss, void *dlogits, enum dtype dt,
                               const float *logits, const float *max, const float *sum,
                               const float *target, const int32_t *label, float scale, int64_t n,
                               int V, int col0);

    /* --- AdamW (Loshchilov and Hutter; torch.optim.AdamW): p *= 1 - lr wd; m, v averages of
     * g * grad_scale; p -= lr (m / c1) / (sqrt(v / c2) + eps). m, v of m_dt. *bad becomes 1, and
     * is left alone otherwise, when a new p, m or v is NaN or at least ADAMW_LIMIT. --- */
    void (*adamw)(struct stream *s, float *p, void *m, void *v, enum dtype m_dt, const float *g,
                  int64_t n, const struct adamw_args *args, int32_t *bad);
};

/* Every slot that works on data, for tables of them: X(name), X(name), ... */
#define BACKEND_OPERATIONS(X)                                                                      \
    X(copy), X(zero), X(cast), X(add), X(copy_rows), X(sum_squares), X(sum_add), X(linear_fwd),    \
        X(linear_bwd_x), X(linear_bwd_w), X(grouped_fwd), X(grouped_bwd_x), X(grouped_bwd_w),      \
        X(rmsnorm_fwd), X(rmsnorm_bwd), X(rope), X(attention_fwd), X(attention_bwd),               \
        X(attention_cached), X(swiglu_fwd), X(swiglu_bwd), X(embedding_fwd), X(embedding_bwd),     \
        X(router_fwd), X(router_bwd), X(balance_stats), X(balance_loss), X(bias_update),           \
        X(sort_by_expert), X(count_add), X(gather_rows), X(combine_fwd), X(combine_bwd),           \
        X(cross_entropy_max), X(cross_entropy_sum), X(cross_entropy_loss), X(adamw)

extern const struct backend backend_cpu;

/* One operation of the backend and stream that x holds. A plan pass has no backend: its arenas
 * count and nothing is computed. */
#define RUN(x, op, ...)                                                                            \
    do {                                                                                           \
        if ((x)->be) (x)->be->op((x)->stream, ##__VA_ARGS__);                                      \
    } while (0)

/* The backend of that name ("cpu", "cuda"), or NULL when it is not built. */
const struct backend *backend_find(const char *name);

/* Whether its memory is the host's: the CPU backend, itself or under a profile; not NULL. */
bool backend_is_cpu(const struct backend *be);

/* Stop the run at start-up, with the op's name, if a slot of the table is empty. */
void backend_check(const struct backend *be);

/* An arena over new memory of the backend (free arena->base with be->free), or, when be is NULL (a
 * plan pass), one that counts. poison works where the host can write: on the CPU backend. */
void backend_take_arena(const struct backend *be, struct arena *arena, const char *name,
                        size_t bytes, bool poison);

#ifdef __cplusplus
}
#endif
