/* Several steps on every layout agree with a plain AdamW in double over whole tensors. */
// TEST ranks=1,2,4 timeout=60
#include "optim_rig.h"
#include "test.h"

#include <math.h>

enum { N_STEPS = 3 };

/* The textbook algorithm over all elements of all parameters. */
struct reference {
    double *p, *m, *v;
    double norm[N_STEPS + 1];
};

static void reference_init(struct reference *ref, const struct rig *rig)
{
    size_t bytes = 0;
    for (int i = 0; i < rig->params.n_params; i++)
        bytes += sizeof(double) * (size_t)rig->params.param[i].n_all;
    ref->p = mem_alloc(bytes, "p");
    ref->m = mem_alloc(bytes, "m");
    ref->v = mem_alloc(bytes, "v");
    double *at = ref->p;
    for (int i = 0; i < rig->params.n_params; i++) {
        const struct param *p = &rig->params.param[i];
        float *x = mem_alloc(sizeof *x * (size_t)p->n_all, "x");
        rng_fill_normal(x, rng_key((uint64_t)rig->cfg.run.seed, p->name), 0, p->n_all,
                        rig->cfg.model.initializer_range);
        for (int64_t j = 0; j < p->n_all; j++) *at++ = p->init == INIT_ONES ? 1.0 : (double)x[j];
        mem_free(x);
    }
}

static void reference_free(struct reference *ref)
{
    mem_free(ref->p);
    mem_free(ref->m);
    mem_free(ref->v);
}

static double whole_norm(const struct param_table *t, int step)
{
    double squares = 0.0;
    for (int i = 0; i < t->n_params; i++) {
        const uint64_t key = rng_key((uint64_t)step, t->param[i].name);
        for (int64_t j = 0; j < t->param[i].n_all; j++)
            squares += rig_gradient(key, j) * rig_gradient(key, j);
    }
    return sqrt(squares);
}

static void reference_step(struct reference *ref, const struct rig *rig, int step)
{
    const struct config_optimizer *o = &rig->cfg.optimizer;
    const double norm = ref->norm[step] = whole_norm(&rig->params, step);
    const double scale = o->clip > 0.0 ? fmin(1.0, o->clip / (norm + 1e-6)) : 1.0;
    const double c1 = 1.0 - pow(o->beta1, step), c2 = 1.0 - pow(o->beta2, step);
    int64_t at = 0;
    for (int i = 0; i < rig->params.n_params; i++) {
        const struct param *p = &rig->params.param[i];
        const uint64_t key = rng_key((uint64_t)step, p->name);
        for (int64_t j = 0; j < p->n_all; j++, at++) {
            const double g = scale * rig_gradient(key, j);
            ref->m[at] = o->beta1 * ref->m[at] + (1.0 - o->beta1) * g;
            ref->v[at] = o->beta2 * ref->v[at] + (1.0 - o->beta2) * g * g;
            ref->p[at] *= 1.0 - o->lr * (p->n_dims > 1 ? o->weight_decay : 0.0);
            ref->p[at] -= o->lr * (ref->m[at] / c1) / (sqrt(ref->v[at] / c2) + o->eps);
        }
    }
}

static double worst_difference(const struct rig *rig, const struct reference *ref)
{
    double worst = 0.0;
    int64_t at = 0;
    for (int i = 0; i < rig->params.n_params; at += rig->params.param[i++].n_all) {
        const struct param *p = &rig->params.param[i];
        for (int64_t j = 0; j < p->n; j++) {
            const double want = ref->p[at + param_global_index(p, &rig->mesh, j)];
            const double got = p->dtype == DTYPE_F32 ? ((const float *)p->w)[j]
                                                     : bf16_to_f32(((const bf16 *)p->w)[j]);
            if (!(fabs(got - want) <= worst)) /* NaN counts */
                worst = fabs(got - want);
        }
    }
    return worst;
}

static void check_layout(const struct config *cfg, const struct reference *ref, double tolerance,
                         const char *what)
{
    static struct rig rig;
    rig_init(&rig, cfg, false);
    for (int step = 1; step <= N_STEPS; step++) {
        rig_add_gradients(&rig, step);
        optim_reduce_gradients(&rig.opt);
        const double norm = optim_grad_norm(&rig.opt);
        optim_step(&rig.opt, step, cfg->optimizer.lr, norm);
        /* Every square and every sum is exact in F64: the same bits on any layout. */
        EXPECT(norm == ref->norm[step], "%s tp %d ep %d step %d: norm %.17g, expected %.17g", what,
               rig.mesh.tp, rig.mesh.ep, step, norm, ref->norm[step]);
    }
    const double worst = worst_difference(&rig, ref);
    EXPECT(worst <= tolerance, "%s tp %d ep %d: weights differ by %.3g", what, rig.mesh.tp,
           rig.mesh.ep, worst);
    rig_free(&rig);
}

static void check_run(struct config *cfg, double tolerance, const char *what)
{
    static struct rig one;
    struct reference ref;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rig_init(&one, cfg, true);
    reference_init(&ref, &one);
    for (int step = 1; step <= N_STEPS; step++) reference_step(&ref, &one, step);
    rig_free(&one);
    for (int i = 0; i < RIG_N_LAYOUTS; i++) {
        if (rig_layouts[i].ranks != size) continue;
        cfg->topology.tp = rig_layouts[i].tp;
        cfg->topology.ep = rig_layouts[i].ep;
        check_layout(cfg, &ref, tolerance, what);
    }
    reference_free(&ref);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct config cfg = rig_config();
    /* F32 rounding of values up to 1.5, about 1e-7 a step; measured 2.5e-7. */
    check_run(&cfg, 1e-6, "clipped");
    /* With eps 1 a wrong factor of the gradient shows in the update, which is about 0.05. */
    cfg.optimizer.eps = 1.0;
    cfg.optimizer.clip = 1500.0; /* about half of the norm */
    check_run(&cfg, 1e-6, "eps 1");
    cfg.optimizer.clip = 0.0;
    /* BF16 keeps 8 bits: 0.2 % of the moments in each of 3 updates of at most 0.1. */
    cfg.optimizer.moments_dtype = DTYPE_BF16;
    check_run(&cfg, 2e-3, "no clip, BF16 moments");
    /* The masters stay F32; w is their rounding, half an ulp of 2 at most. */
    cfg.optimizer.moments_dtype = DTYPE_F32;
    cfg.train.compute_dtype = DTYPE_BF16;
    check_run(&cfg, 1.0 / 256.0, "BF16 compute");
    EXPECT(mem_live() == 0, "%ld blocks not freed", mem_live());
    return test_end();
}
