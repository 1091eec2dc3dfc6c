/* Initial weights are the same bits on every layout, different for every expert, and of the std. */
// TEST ranks=1,2,4 timeout=30
#include "optim_rig.h"
#include "test.h"

#include <math.h>

/* All values of p from the definition alone. */
static float *values(const struct rig *rig, const struct param *p)
{
    float *x = mem_alloc(sizeof *x * (size_t)p->n_all, "values");
    rng_fill_normal(x, rng_key((uint64_t)rig->cfg.run.seed, p->name), 0, p->n_all,
                    rig->cfg.model.initializer_range);
    for (int64_t i = 0; p->init == INIT_ONES && i < p->n_all; i++) x[i] = 1.0f;
    return x;
}

static void check_weights(const struct rig *rig)
{
    for (int i = 0; i < rig->params.n_params; i++) {
        const struct param *p = &rig->params.param[i];
        float *want = values(rig, p);
        int64_t n_wrong = 0;
        for (int64_t j = 0; j < p->n; j++) {
            const float x = want[param_global_index(p, &rig->mesh, j)];
            if (p->dtype == DTYPE_F32)
                n_wrong += ((const float *)p->w)[j] != x;
            else
                n_wrong += ((const bf16 *)p->w)[j] != f32_to_bf16(x);
        }
        EXPECT(n_wrong == 0, "tp %d ep %d %s: %lld of %lld elements differ", rig->mesh.tp,
               rig->mesh.ep, p->name, (long long)n_wrong, (long long)p->n);
        mem_free(want);
    }
}

static void check_std(const struct rig *rig)
{
    for (int i = 0; i < rig->params.n_params; i++) {
        const struct param *p = &rig->params.param[i];
        if (p->init != INIT_NORMAL) continue;
        double sum = 0.0, squares = 0.0;
        for (int64_t j = 0; j < p->n_all; j++) {
            const double x = ((const float *)p->w)[j];
            sum += x;
            squares += x * x;
        }
        const double mean = sum / (double)p->n_all;
        const double std = sqrt(squares / (double)p->n_all - mean * mean);
        /* 2 %, or four standard errors of the estimate where the tensor is small. */
        const double bound = fmax(0.02, 4 / sqrt(2.0 * (double)p->n_all));
        EXPECT(fabs(std / rig->cfg.model.initializer_range - 1.0) < bound, "%s: std %g", p->name,
               std);
    }
}

static void check_experts_differ(const struct rig *rig)
{
    int n_rows = 0;
    for (int i = 0; i < rig->params.n_params; i++) {
        const struct param *p = &rig->params.param[i];
        if (p->group != GROUP_EXPERT) continue;
        n_rows++;
        const int64_t each = p->n_all / p->dim[0];
        for (int64_t a = 0; a < p->dim[0]; a++)
            for (int64_t b = 0; b < a; b++) {
                const float *x = (const float *)p->w + a * each,
                            *y = (const float *)p->w + b * each;
                int64_t n_equal = 0;
                for (int64_t j = 0; j < each; j++) n_equal += x[j] == y[j];
                /* Equal by chance: values have some 2^24 levels near the mean. */
                EXPECT(n_equal < 3, "%s: experts %d and %d share %d values", p->name, (int)a,
                       (int)b, (int)n_equal);
            }
    }
    EXPECT(n_rows == 6, "%d rows of experts, expected 3 in each of 2 layers", n_rows);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static struct rig one, rig;
    struct config cfg = rig_config();
    uint64_t want, got;
    double want_l2, l2;
    rig_init(&one, &cfg, true);
    check_std(&one);
    check_experts_differ(&one);
    optim_param_hash(&one.opt, &want, &want_l2);

    for (int i = 0; i < RIG_N_LAYOUTS * 2; i++) {
        const struct rig_layout *l = &rig_layouts[i / 2];
        if (l->ranks != size) continue;
        cfg.topology.tp = l->tp;
        cfg.topology.ep = l->ep;
        cfg.train.compute_dtype = i % 2 ? DTYPE_BF16 : DTYPE_F32;
        rig_init(&rig, &cfg, false);
        check_weights(&rig);
        optim_param_hash(&rig.opt, &got, &l2);
        EXPECT(got == want, "tp %d ep %d: hash %016llx, one rank %016llx", l->tp, l->ep,
               (unsigned long long)got, (unsigned long long)want);
        /* F64 sums of about 10^5 squares in another order. */
        EXPECT(fabs(l2 - want_l2) < 1e-12 * want_l2, "L2 %.17g, one rank %.17g", l2, want_l2);
        rig_free(&rig);
    }
    /* The hash sees the lowest bit of one value. */
    float *x = one.params.bucket[0].master;
    x[0] = nextafterf(x[0], 1.0f);
    optim_param_hash(&one.opt, &got, &l2);
    EXPECT(got != want, "a changed weight keeps the hash %016llx", (unsigned long long)got);
    rig_free(&one);
    EXPECT(mem_live() == 0, "%ld blocks not freed", mem_live());
    return test_end();
}
