/* Every mesh of the job's ranks reads what every kind of mesh has written, and saving it again
 * gives the same tensors bit for bit; experts have their global numbers, each other values. */
// TEST ranks=1,2,4,8 timeout=60
#include "tests/ckpt_rig.h"
#include "tests/run_rig.h"
#include "train/save.h"

enum { STEPS = 2 };
#define SAVING "checkpoint.on_exit=true optimizer.moments_dtype=bf16 "

static void overrides(char text[1024], const char *more, int tp, int ep)
{
    snprintf(text, 1024, SAVING "%s topology.tp=%d topology.ep=%d", more, tp, ep);
}

/* Two steps on the mesh, and a checkpoint of them. */
static void write_on(const char *name, int tp, int ep)
{
    static struct run_rig rig;
    char text[1024];
    overrides(text, "", tp, ep);
    run_rig_init(&rig, name, text);
    for (int i = 0; i < STEPS; i++) run_rig_step(&rig);
    save_now(&rig.run);
    run_rig_free(&rig);
}

static void read_on(const char *from, const char *name, int tp, int ep)
{
    static struct run_rig rig;
    char text[1024], more[800], dir[700], other[700];
    snprintf(dir, sizeof dir, "%s/%s", test_tmpdir(), from);
    snprintf(other, sizeof other, "%s/%s", test_tmpdir(), name);
    snprintf(more, sizeof more, "run.resume=%s/checkpoints", dir);
    overrides(text, more, tp, ep);
    run_rig_init(&rig, name, text);
    EXPECT(rig.run.progress.step == STEPS, "%s begins at step %lld", name,
           (long long)rig.run.progress.step);
    save_start(&rig.run);
    save_wait(&rig.run);
    if (rig.run.mesh.rank == 0) {
        struct ckpt a, b;
        ckpt_open(&a, dir, STEPS);
        ckpt_open(&b, other, STEPS);
        ckpt_expect_same(&a, &b);
        EXPECT(a.manifest.state.param_hash == b.manifest.state.param_hash, "%s: hash", name);
        ckpt_close(&b);
        ckpt_close(&a);
    }
    run_rig_free(&rig);
}

/* 8 experts of a layer, no two with the same weights. */
static void check_experts(const char *name)
{
    char dir[700], tensor[CKPT_NAME];
    struct ckpt c;
    void *x[8];
    snprintf(dir, sizeof dir, "%s/%s", test_tmpdir(), name);
    ckpt_open(&c, dir, STEPS);
    for (int e = 0; e < 8; e++) {
        snprintf(tensor, sizeof tensor, "model/model.layers.4.mlp.experts.%d.up_proj.weight", e);
        const struct ckpt_tensor *t = manifest_find(&c.manifest, tensor);
        EXPECT(t && t->dim[0] == 32 && t->dim[1] == 64, "no %s", tensor);
        x[e] = ckpt_read(&c, t);
        for (int k = 0; k < e; k++)
            EXPECT(memcmp(x[k], x[e], 32 * 64 * sizeof(float)) != 0, "experts %d and %d", k, e);
    }
    for (int e = 0; e < 8; e++) free(x[e]);
    ckpt_close(&c);
}

int main(int argc, char **argv)
{
    const int n = run_rig_begin(&argc, &argv);
    char from[64], name[64];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* written with everything split, and with data parallelism only */
    for (int kind = 0; kind < (n == 1 || n == 8 ? 1 : 2); kind++) {
        const int most_tp = n < 4 ? n : 4;
        snprintf(from, sizeof from, "from%d", kind);
        write_on(from, kind == 0 ? most_tp : 1, kind == 0 ? n : 1);
        if (rank == 0) check_experts(from);
        for (int tp = 1; tp <= most_tp; tp *= 2)
            for (int ep = 1; ep <= n; ep *= 2) {
                snprintf(name, sizeof name, "to-%d-tp%d-ep%d", kind, tp, ep);
                read_on(from, name, tp, ep);
            }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return test_end();
}
