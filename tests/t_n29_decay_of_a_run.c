/* A step of a whole run without any gradient: every tensor that the start-up print does not except
 * shrinks by 1 - lr x decay, norms stay 1, selection biases stay. */
// TEST ranks=1,4 timeout=30
#include "base/poison.h"
#include "tests/run_rig.h"
#include "tests/window_runs.h"

#include <math.h>

static const double LR = 0.1, DECAY = 0.5;
static const float BIAS = 0.3f;

/* What run_rig_init printed on this rank. */
static void start(struct run_rig *rig, const char *overrides, char said[8192])
{
    FILE *file = tmpfile();
    fflush(stdout);
    const int screen = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    run_rig_init(rig, "run", overrides);
    fflush(stdout);
    dup2(screen, STDOUT_FILENO);
    close(screen);
    rewind(file);
    said[fread(said, 1, 8191, file)] = '\0';
    fclose(file);
}

/* Whether the line "decay" names the tensor as one that does not decay. */
static bool excepted(const char *said, const char *name)
{
    char line[1024], word[128];
    const char *decay = strstr(said, "\ndecay "), *kind = name;
    for (int dots = 0; !strncmp(name, "model.layers.", 13) && dots < 3; dots++)
        kind = strchr(kind, '.') + 1;
    EXPECT(decay, "no line of what decays in: %s", said);
    snprintf(line, sizeof line, "%.*s,", decay ? (int)strcspn(decay + 1, "\n") : 0, decay + 1);
    snprintf(word, sizeof word, " %.*s,", (int)(strlen(kind) - strlen(".weight")), kind);
    return strstr(line, word);
}

static void check_param(const struct param *p, const float *before, const char *said, int rank)
{
    const bool is_norm = p->n_dims == 1;
    if (rank == 0)
        EXPECT(excepted(said, p->name) == is_norm, "%s: excepted %d, it is %s", p->name, !is_norm,
               is_norm ? "a norm" : "a matrix");
    const float *w = p->w;
    for (int64_t i = 0; i < p->n; i++) {
        const double want = is_norm ? 1 : before[i] * (1 - LR * DECAY);
        /* one rounding of the factor and one of the product, 2^-24 each */
        EXPECT(fabs(w[i] - want) <= (is_norm ? 0 : 1.3e-7 * fabs(want)),
               "%s[%lld]: %.9g, expected %.9g", p->name, (long long)i, w[i], want);
    }
}

int main(int argc, char **argv)
{
    static struct run_rig rig;
    static const char *const ones[] = {"1", "1", "1", "1", "1", "1", "1", "1"}; /* one batch */
    char overrides[1024], said[8192];
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_tmpdir();
    const char *shard = fixture_path("ones.tok.zst");
    if (rank == 0) window_shard("ones.tok.zst", fixture_id, ones, 8);
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(overrides, sizeof overrides,
             "data.train=%s data.document_mask=true train.balance_loss_alpha=0 "
             "train.router_bias_speed=0 optimizer.lr=%g optimizer.weight_decay=%g "
             "optimizer.warmup_steps=0 optimizer.schedule=constant topology.tp=%d topology.ep=%d",
             shard, LR, DECAY, size > 1 ? 2 : 1, size);
    start(&rig, overrides, said);
    const struct model *m = &rig.run.model;
    for (int e = 0; e < m->E; e++) run_rig_set_bias(&rig, e, BIAS);
    const char *base = rig.run.weights.base;
    char *before = malloc(rig.run.weights.used);
    poison_allow(rig.run.weights.base, rig.run.weights.used);
    memcpy(before, base, rig.run.weights.used);
    run_rig_step(&rig);
    for (int i = 0; i < rig.run.params.n_params; i++) {
        const struct param *p = &rig.run.params.param[i];
        check_param(p, (const float *)(before + ((const char *)p->w - base)), said, rank);
    }
    for (int64_t i = 0; i < (int64_t)m->n_moe * m->E; i++)
        EXPECT(m->bias[i] == BIAS, "selection bias %lld is %g", (long long)i, (double)m->bias[i]);
    free(before);
    run_rig_free(&rig);
    return test_end();
}
