/* Documents of 5, 1, 2, 8 and 16 tokens fill a window: with data.document_mask no label, of the
 * main model or of an MTP module, comes from another document or from before its position, places
 * without a label have no loss, and what fills them is not trained as token 0. */
// TEST ranks=1,2 timeout=60
#include "data_fixture.h"
#include "run_rig.h"

#include <math.h>

enum { T = FIXTURE_T, N_DEPTHS = 3, V = FIXTURE_VOCAB };

/* Token t is id t + 1: every id once, 0 never. */
static uint32_t next_id(int64_t i)
{
    return (uint32_t)i + 1;
}

static int document_of(int t)
{
    return t < 5 ? 0 : t < 6 ? 1 : t < 8 ? 2 : t < 16 ? 3 : t < 32 ? 4 : 5;
}

static int expected_label(bool mask, int t, int k)
{
    const int at = t + 1 + k;
    return at > T || (mask && document_of(at) != document_of(t)) ? -1 : (int)next_id(at);
}

/* Labels, and the losses of this rank's tokens; of an untrained model they are about ln 512. */
static void check_losses(const struct model *m, bool mask, const int64_t *n_label)
{
    static const int n_masked[N_DEPTHS] = {27, 23, 20}, n_open[N_DEPTHS] = {32, 31, 30};
    const int64_t first = first_token(m);
    for (int k = 0; k < N_DEPTHS; k++) {
        const int want = mask ? n_masked[k] : n_open[k];
        EXPECT(n_label[k] == want, "depth %d: %ld labels, expected %d", k, (long)n_label[k], want);
        for (int t = 0; t < T; t++)
            EXPECT(m->flow.label[k][t] == expected_label(mask, t, k), "depth %d place %d: label %d",
                   k, t, m->flow.label[k][t]);
        for (int64_t i = 0; i < m->flow.N; i++) {
            const float loss = m->flow.token_loss[k][i];
            EXPECT(expected_label(mask, (int)(first + i), k) < 0 ? loss == 0
                                                                 : fabsf(loss - 6.2f) < 1,
                   "depth %d place %ld: loss %g", k, (long)(first + i), (double)loss);
        }
    }
}

/* The norm of every row of a gradient that is split by rows over the ranks. */
static void row_norms(const struct param *p, const struct mesh *mesh, double *norm)
{
    const int64_t rows = p->local_dim[0], D = p->local_dim[1];
    memset(norm, 0, V * sizeof *norm);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < D; d++)
            norm[param_global_index(p, mesh, r * D) / D] += pow(p->grad[r * D + d], 2);
    MPI_Allreduce(MPI_IN_PLACE, norm, V, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int v = 0; v < V; v++) norm[v] = sqrt(norm[v]);
}

/* An id that is never a label is only pushed down by its share, about 1 / 512, of every place: less
 * than 27 / 512 of what one label brings, and as little as every other such id. */
static void check_gradients(const struct model *m, bool mask)
{
    double head[V], embed[V], least = INFINITY, most = 0;
    bool is_label[V] = {false};
    row_norms(m->head, m->mesh, head);
    row_norms(m->embed, m->mesh, embed);
    for (int k = 0; k < N_DEPTHS; k++)
        for (int t = 0; t < T; t++)
            if (expected_label(mask, t, k) >= 0) is_label[expected_label(mask, t, k)] = true;
    for (int v = 0; v < V; v++) {
        if (is_label[v] && head[v] < least) least = head[v];
        if (!is_label[v] && head[v] > most) most = head[v];
    }
    EXPECT(most < 0.1 * least,
           "head: gradient of ids that are no label up to %g, of labels from %g", most, least);
    EXPECT(head[0] > 0 && head[0] < 0.1 * least, "head: gradient of token 0 is %g", head[0]);
    EXPECT(!is_label[1] && head[1] < 0.1 * least, "head: gradient of the first token is %g",
           head[1]);
    EXPECT(embed[0] == 0, "embedding: gradient of token 0, which is nowhere, is %g", embed[0]);
    EXPECT(embed[1] > 0, "embedding: gradient of the first token is %g", embed[1]);
}

/* Places of an MTP module that lack an input or a label are routed and counted like all others. */
static void check_routed(const struct model *m)
{
    for (int l = 0; l < m->n_moe; l++) {
        int64_t sum = 0;
        for (int e = 0; e < m->E; e++) sum += m->expert_count[l * m->E + e];
        EXPECT(sum == m->flow.N * m->K, "MoE layer %d: %ld rows, expected %ld", l, (long)sum,
               (long)(m->flow.N * m->K));
    }
}

static void check(const char *path, bool mask, int size)
{
    char overrides[1500];
    struct run_rig rig;
    int64_t n_label[1 + MAX_MTP] = {0};

    snprintf(overrides, sizeof overrides,
             "data.train=%s data.document_mask=%s model.num_nextn_predict_layers=2 topology.tp=%d "
             "train.global_batch=1 train.steps=2 train.balance_loss_alpha=0",
             path, mask ? "true" : "false", size);
    run_rig_init(&rig, "run", overrides);
    struct model *m = &rig.run.model;
    const struct batch *b = reader_try_wait(rig.run.train_reader, &(struct fault){0});
    model_count_labels(m, b->token, b->doc_start, NULL, n_label);
    for (int k = 0; k < N_DEPTHS; k++) m->flow.loss_scale[k] = 1.0f / (float)n_label[k];
    model_load(m, b->token, b->doc_start, NULL);
    model_forward(m, true);
    check_losses(m, mask, n_label);
    check_routed(m);
    model_backward(m);
    check_gradients(m, mask);
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    const int length[] = {5, 1, 2, 8, 16, 4};
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_tmpdir();
    if (rank == 0) fixture_shard("five.tok.zst", V, next_id, 0, 36, length, 6);
    MPI_Barrier(MPI_COMM_WORLD);
    check(fixture_path("five.tok.zst"), true, size);
    check(fixture_path("five.tok.zst"), false, size);
    return test_end();
}
