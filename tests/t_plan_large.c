/* The 671B model on 2,048 ranks: planned in a moment and in little memory, and what is planned is
 * what the report's shapes give by hand. */
// TEST ranks=1 timeout=30
#include "test.h"
#include "train/plan.h"

#include <sys/resource.h>
#include <time.h>

enum { RANKS = 2048, TP = 2, EP = 64, DP = RANKS / TP, EDP = RANKS / EP, PER_NODE = 8 };
enum { D = 7168, HEADS = 128, R_Q = 1536, R_KV = 512, D_ROPE = 64, D_QK = 192, D_V = 128 };
enum { E = 256, K = 8, F = 2048, F_DENSE = 18432, V = 129280, T = 4096 };
enum { LAYERS = 62, MOE = 59, DENSE = 3, MICRO = 15 }; /* the MTP module is a MoE layer */

/* Values of the model by who holds them: F32 ones, and matrices in BF16. */
static const int64_t norms = LAYERS * (2 * D + R_Q + R_KV) + D + 3 * D,
                     routers = (int64_t)MOE * E * D;
static const int64_t whole = LAYERS * (int64_t)(R_Q + R_KV + D_ROPE) * D + 2ll * D * D;
static const int64_t by_tp =
    LAYERS * (int64_t)HEADS * (D_QK * R_Q + (128 + D_V) * R_KV + D_V * (int64_t)D) +
    DENSE * 3ll * D * F_DENSE + MOE * 3ll * D * F + 2ll * V * D;
static const int64_t by_ep = MOE * 3ll * E * D * F;

/* Buckets are rounded up to shards of 64 elements: this many elements at most, over all of them. */
enum { PADDING = 64 * (2 * RANKS + DP + EDP) };

static void expect_near(const char *what, int64_t found, int64_t least, int64_t most)
{
    EXPECT(found >= least && found <= most, "%s: %lld, expected %lld to %lld", what,
           (long long)found, (long long)least, (long long)most);
}

static void check_memory(const struct plan *p)
{
    const int64_t wide = norms + routers, narrow = whole + by_tp / TP + by_ep / EP;
    /* What a rank has of the optimizer: a share of each over the ranks that hold the same. */
    const int64_t wide_share = wide / RANKS;
    const int64_t narrow_share = whole / RANKS + by_tp / TP / DP + by_ep / EP / EDP;
    const size_t *role = p->balanced.role;
    EXPECT(wide + whole + by_tp + by_ep == 671026404352 + 11610067968, "%lld parameters by hand",
           (long long)(wide + whole + by_tp + by_ep));
    EXPECT(p->n_params == wide + narrow, "%lld parameters on a rank, %lld by hand",
           (long long)p->n_params, (long long)(wide + narrow));
    const int64_t weights = 4 * wide + 2 * narrow, grads = 4 * (wide + narrow);
    expect_near("weights", (int64_t)role[ROLE_WEIGHTS], weights, weights + 4 * PADDING);
    expect_near("gradients", (int64_t)role[ROLE_GRADIENTS], grads, grads + 4 * PADDING);
    /* Moments in BF16, masters in F32 beside BF16 weights; then a little for the norms. */
    const int64_t optimizer = 4 * wide_share + (4 + 4) * narrow_share;
    expect_near("optimizer", (int64_t)role[ROLE_OPTIMIZER], optimizer, optimizer + (64 << 10));
    for (int i = 0; i < N_ROLES; i++)
        EXPECT(i == ROLE_ACTIVATIONS || role[i] == p->worst.role[i], "%s depends on the routing",
               memory_role_name(i));
    /* A layer keeps gate, up [M, F] and rows [M, D] of M = N K rows, or of all 64 ranks' 4. */
    const int64_t row = 2 * (2 * F + D), balanced = T / TP * K, worst = T / TP * 64ll * 4;
    expect_near("activations", (int64_t)role[ROLE_ACTIVATIONS], MOE * row * balanced, INT64_MAX);
    expect_near("activations, all tokens to one rank",
                (int64_t)(p->worst.role[ROLE_ACTIVATIONS] - role[ROLE_ACTIVATIONS]),
                MOE * row * (worst - balanced), INT64_MAX);
}

static void check_sent(const struct comm_counts *sent)
{
    const int64_t N = T / TP, passes = 4; /* to the experts and back, forward and backward */
    const struct comm_count *rows = &sent->of[COMM_ALL_TO_ALL_ROWS][AXIS_EP];
    const int64_t each = MICRO * MOE * passes * N * K / EP * D * 2;
    EXPECT(rows->bytes_intra == each * (PER_NODE - 1) &&
               rows->bytes_inter == each * (EP - PER_NODE),
           "rows: %lld bytes on the node and %lld beyond, expected %lld and %lld",
           (long long)rows->bytes_intra, (long long)rows->bytes_inter,
           (long long)each * (PER_NODE - 1), (long long)each * (EP - PER_NODE));
    /* Expert groups lie on 8 nodes each, so a node has one member of an edp axis. */
    const int64_t shard = by_ep / EP / EDP;
    const struct comm_count *grads = &sent->of[COMM_REDUCE_SCATTER][AXIS_EDP];
    const struct comm_count *weights = &sent->of[COMM_ALL_GATHER][AXIS_EDP];
    EXPECT(grads->bytes_intra == 0 && weights->bytes_intra == 0, "edp within a node");
    expect_near("gradients over edp", grads->bytes_inter, (EDP - 1) * shard * 4,
                (EDP - 1) * (shard + 64) * 4);
    expect_near("weights over edp", weights->bytes_inter, (EDP - 1) * shard * 2,
                (EDP - 1) * (shard + 64) * 2);
    EXPECT(sent->of[COMM_ALL_REDUCE][AXIS_WORLD].bytes_inter ==
               (int64_t)(RANKS - PER_NODE) * MOE * E * 8,
           "expert counts");
}

int main(void)
{
    enum { MOST_SECONDS = 2, MOST_MIB = 200 }; /* measured 0.03 s and 9 MiB */
    const struct mesh_shape shape = {RANKS, TP, EP, PER_NODE};
    struct config cfg;
    struct err_list errs = {0};
    struct rank_kind *kind;
    struct rusage usage;
    config_try_load(&cfg, "configs/runs/deepseek-v3-671b-2048gpu.yaml", 0, NULL, &errs);
    EXPECT(errs.n == 0, "%s", errs.text);
    const clock_t start = clock();
    const int n = plan_job(&kind, &cfg, &shape);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    getrusage(RUSAGE_SELF, &usage);
    EXPECT(seconds < test_patience_s(MOST_SECONDS), "planning took %.2f s", seconds);
    EXPECT(TEST_SANITIZED || usage.ru_maxrss < MOST_MIB << 10, "planning took %ld KiB",
           usage.ru_maxrss);
    EXPECT(n == 1 && kind->n_ranks == RANKS && kind->plan.n_micro == MICRO,
           "%d kinds, %d ranks of the first, %d micro-batches", n, kind->n_ranks,
           kind->plan.n_micro);
    check_memory(&kind->plan);
    check_sent(&kind->plan.sent);
    free(kind);
    err_free(&errs);
    config_free(&cfg);
    return test_end();
}
