/* Every weight moves by the same amount on every mesh: gradients of experts are summed over the
 * tokens of all ranks, the norm that clips them counts every element once. */
// TEST ranks=4 timeout=60
#include "tests/run_rig.h"
#include "tests/window_runs.h"

#include <math.h>
#include <string.h>

enum { STEPS = 5 };

/* eps = 1 makes a step proportional to the gradient, so that a wrong factor shows. Routing is
 * forced: a near tie may fall either way between meshes. */
static const char settings[] =
    "train.steps=5 optimizer.eps=1 optimizer.lr=0.1 optimizer.schedule=constant "
    "optimizer.warmup_steps=1 optimizer.weight_decay=0 debug.balanced_routing=true "
    "model.initializer_range=0.1";

static void start(struct run_rig *rig, double clip, const char *mesh)
{
    char all[512];
    snprintf(all, sizeof all, "%s optimizer.clip=%.9g %s", settings, clip, mesh);
    run_rig_init(rig, "run", all);
}

/* Of the first step, before clipping. */
static double first_norm(void)
{
    static struct run_rig rig;
    double norm = 0;
    start(&rig, 0, "");
    run_rig_step(&rig);
    if (rig.run.mesh.rank == 0) {
        json_t *step = window_step("run", 1);
        norm = window_number(step, "grad_norm");
        json_decref(step);
    }
    run_rig_free(&rig);
    MPI_Bcast(&norm, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return norm;
}

/* This rank's part of every tensor, one after the other. */
static float *copy_weights(const struct run *run)
{
    int64_t n = 0;
    for (int i = 0; i < run->params.n_params; i++) n += run->params.param[i].n;
    float *copy = malloc((size_t)n * sizeof *copy), *at = copy;
    for (int i = 0; i < run->params.n_params; at += run->params.param[i++].n)
        memcpy(at, run->params.param[i].w, (size_t)run->params.param[i].n * sizeof *at);
    return copy;
}

/* First and last weights of the reference, whole on every rank. */
struct reference {
    double clip;
    float *first, *last;
};

static double largest_change(const float *first, const float *last, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)last[i] - first[i]));
    return most;
}

/* Changes agree to 1e-5 of the tensor's largest (F32 sums in another order), and to the last bits
 * of the weights: each step rounds once. */
static void check_param(const struct param *p, const struct mesh *mesh, const float *first,
                        const float *last)
{
    const double most = largest_change(first, last, p->n_all);
    const float *w = p->w;
    EXPECT(most > 0, "%s does not move", p->name); /* or nothing would be compared */
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t g = param_global_index(p, mesh, i);
        const double error = fabs((double)w[i] - last[g]);
        EXPECT(error <= 1e-5 * most + 2 * STEPS * 6e-8 * fabsf(w[i]),
               "%s[%lld]: %.9g, reference %.9g, moved by %.3g", p->name, (long long)g, w[i],
               last[g], (double)last[g] - first[g]);
    }
}

static void check_mesh(const char *mesh, const struct reference *ref)
{
    static struct run_rig rig;
    start(&rig, ref->clip, mesh);
    for (int s = 0; s < STEPS; s++) run_rig_step(&rig);
    int64_t at = 0;
    for (int i = 0; i < rig.run.params.n_params; i++) {
        const struct param *p = &rig.run.params.param[i];
        check_param(p, &rig.run.mesh, ref->first + at, ref->last + at);
        at += p->n_all;
    }
    run_rig_free(&rig);
}

int main(int argc, char **argv)
{
    static struct run_rig rig;
    static const char *const meshes[] = {"topology.ep=2", "topology.ep=4",
                                         "topology.tp=2 topology.ep=2",
                                         "topology.tp=2 topology.ep=4"};
    run_rig_begin(&argc, &argv);
    struct reference ref = {.clip = 0.5 * first_norm()};
    start(&rig, ref.clip, "");
    ref.first = copy_weights(&rig.run);
    for (int s = 0; s < STEPS; s++) run_rig_step(&rig);
    ref.last = copy_weights(&rig.run);
    run_rig_free(&rig);
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) check_mesh(meshes[i], &ref);
    free(ref.first);
    free(ref.last);
    return test_end();
}
