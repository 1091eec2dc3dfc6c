/* Without gradients one step shrinks matrices by the decay alone, and nothing else moves. */
// TEST ranks=1,2,4 timeout=30
#include "base/poison.h"
#include "optim_rig.h"
#include "test.h"

#include <math.h>

static int64_t count_not_zero(const char *bytes, int64_t n)
{
    int64_t n_set = 0;
    for (int64_t i = 0; i < n; i++) n_set += bytes[i] != 0;
    return n_set;
}

/* Bytes that are not zero among the elements first .. end - 1 of a bucket: its weights, gradient,
 * and where they are in this rank's shard, master and moments. */
static int64_t count_dirt(const struct rig *rig, int bucket, int64_t first, int64_t end)
{
    const struct bucket *b = &rig->params.bucket[bucket];
    const enum dtype m_dt = rig->cfg.optimizer.moments_dtype;
    const int64_t width = (int64_t)dtype_bytes(b->dtype), m_width = (int64_t)dtype_bytes(m_dt);
    int64_t n = count_not_zero(elem(b->w, b->dtype, first), (end - first) * width) +
                count_not_zero(elem(b->grad, DTYPE_F32, first), (end - first) * 4);
    if (first < b->shard0) first = b->shard0;
    if (end > b->shard0 + b->n_shard) end = b->shard0 + b->n_shard;
    if (end <= first) return n;
    const int64_t at = first - b->shard0, count = end - first;
    n += count_not_zero(elem(b->master, DTYPE_F32, at), count * 4);
    n += count_not_zero(elem(rig->opt.m[bucket], m_dt, at), count * m_width);
    return n + count_not_zero(elem(rig->opt.v[bucket], m_dt, at), count * m_width);
}

/* Everything between and behind the parameters is zero. Returns how many such elements there are.
 */
static int64_t check_padding(const struct rig *rig, const char *when)
{
    int64_t end_of[N_BUCKETS] = {0}, n_padding = 0, dirt = 0;
    for (int i = 0; i < rig->params.n_params; i++) { /* rows lie in a bucket in table order */
        const struct param *p = &rig->params.param[i];
        n_padding += p->offset - end_of[p->bucket];
        dirt += count_dirt(rig, p->bucket, end_of[p->bucket], p->offset);
        end_of[p->bucket] = p->offset + p->n;
    }
    for (int i = 0; i < N_BUCKETS; i++) {
        const struct bucket *b = &rig->params.bucket[i];
        if (!b->n) continue;
        n_padding += b->n - end_of[i];
        dirt += count_dirt(rig, i, end_of[i], b->n);
    }
    EXPECT(dirt == 0, "tp %d ep %d %s: %lld bytes of padding are not zero", rig->mesh.tp,
           rig->mesh.ep, when, (long long)dirt);
    return n_padding;
}

static float *copy_weights(const struct rig *rig)
{
    const struct arena *weights = &rig->arena[RIG_WEIGHTS];
    poison_allow(weights->base, weights->used);
    return memcpy(mem_alloc(weights->used, "copy"), weights->base, weights->used);
}

static void check_decay(const struct config *cfg)
{
    static struct rig rig;
    rig_init(&rig, cfg, false);
    float *before = copy_weights(&rig);
    optim_reduce_gradients(&rig.opt);
    const double norm = optim_grad_norm(&rig.opt);
    EXPECT(norm == 0.0, "norm %g of zero gradients", norm);
    optim_step(&rig.opt, 1, cfg->optimizer.lr, norm);
    const double factor = 1.0 - cfg->optimizer.lr * cfg->optimizer.weight_decay;
    for (int i = 0; i < rig.params.n_params; i++) {
        const struct param *p = &rig.params.param[i];
        const float *w = p->w, *old = before + (w - (float *)rig.arena[RIG_WEIGHTS].base);
        const bool is_norm = p->n_dims == 1;
        EXPECT(p->decay == (!is_norm || cfg->optimizer.decay_all), "%s: decay %d", p->name,
               p->decay);
        double worst = 0.0;
        for (int64_t j = 0; j < p->n; j++) {
            const double want = old[j] * (p->decay ? factor : 1.0);
            worst = fmax(worst, fabs(w[j] - want) / fabs(want));
            if (is_norm && !p->decay) EXPECT(w[j] == 1.0f, "%s[%d] is %g", p->name, (int)j, w[j]);
        }
        /* one rounding of the factor and one of the product, 2^-24 each */
        EXPECT(worst < 1.3e-7, "%s: shrinks by another factor, off by %.3g", p->name, worst);
    }
    check_padding(&rig, "after decay");
    for (int step = 2; step <= 4; step++) {
        rig_add_gradients(&rig, step);
        optim_reduce_gradients(&rig.opt);
        optim_step(&rig.opt, step, cfg->optimizer.lr, optim_grad_norm(&rig.opt));
    }
    const int64_t n_padding = check_padding(&rig, "after steps");
    EXPECT(n_padding > 0, "this table has no padding to look at");
    mem_free(before);
    rig_free(&rig);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < RIG_N_LAYOUTS * 2; i++) {
        const struct rig_layout *l = &rig_layouts[i / 2];
        if (l->ranks != size) continue;
        struct config cfg = rig_config();
        cfg.topology.tp = l->tp;
        cfg.topology.ep = l->ep;
        cfg.optimizer.weight_decay = 0.5;
        cfg.optimizer.decay_all = i % 2;
        cfg.optimizer.moments_dtype = i % 2 ? DTYPE_BF16 : DTYPE_F32;
        check_decay(&cfg);
    }
    return test_end();
}
