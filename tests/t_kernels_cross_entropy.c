/* Cross entropy over a whole vocabulary and over one split in parts, against double loops. */
// TEST ranks=1 timeout=30
#include "kernels.h"

enum { MAX_PARTS = 3 };

struct args {
    int64_t n;
    int V, n_parts, begin[MAX_PARTS + 1];
    enum dtype dt;
    bool in_place;
    float scale;
    const float *part[MAX_PARTS]; /* logits [n, V of the part] */
    const int32_t *label;
};

/* The three steps over the parts, with the reductions between them as the ranks do them. out:
 * loss [n], then the parts' dlogits. */
static void run(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    const size_t row = (size_t)c->n * sizeof(float);
    float *max = new_bytes(row), *sum = new_bytes(row), *target = new_bytes(row);
    float *part = new_bytes(row), *part_target = new_bytes(row), *loss = out;
    void *dlogits = loss + c->n;

    for (int k = 0; k < c->n_parts; k++) {
        backend_cpu.cross_entropy_max(s, part, c->part[k], c->n, c->begin[k + 1] - c->begin[k]);
        for (int64_t i = 0; i < c->n; i++) max[i] = k ? fmaxf(max[i], part[i]) : part[i];
    }
    for (int k = 0; k < c->n_parts; k++) {
        backend_cpu.cross_entropy_sum(s, part, part_target, c->part[k], max, c->label, c->n,
                                      c->begin[k + 1] - c->begin[k], c->begin[k]);
        for (int64_t i = 0; i < c->n; i++) {
            sum[i] = k ? sum[i] + part[i] : part[i];
            target[i] = k ? target[i] + part_target[i] : part_target[i];
        }
    }
    for (int k = 0; k < c->n_parts; k++) {
        const int V = c->begin[k + 1] - c->begin[k];
        if (c->in_place) memcpy(dlogits, c->part[k], row * (size_t)V);
        backend_cpu.cross_entropy_loss(s, loss, dlogits, c->dt, c->in_place ? dlogits : c->part[k],
                                       max, sum, target, c->label, c->scale, c->n, V, c->begin[k]);
        dlogits = elem(dlogits, c->dt, c->n * V);
    }
    free(max), free(sum), free(target), free(part), free(part_target);
}

static void naive(const struct args *c, double *loss, double *dlogits)
{
    for (int64_t i = 0; i < c->n; i++) {
        double sum = 0, at_label = 0;
        for (int k = 0; k < c->n_parts; k++)
            for (int v = c->begin[k]; v < c->begin[k + 1]; v++) {
                const int V = c->begin[k + 1] - c->begin[k];
                const double l = (double)c->part[k][i * V + v - c->begin[k]];
                sum += exp(l);
                if (v == c->label[i]) at_label = l;
            }
        loss[i] = c->label[i] < 0 ? 0 : log(sum) - at_label;
        for (int k = 0; k < c->n_parts; k++)
            for (int v = c->begin[k]; v < c->begin[k + 1]; v++) {
                const int V = c->begin[k + 1] - c->begin[k];
                const int64_t j = i * V + v - c->begin[k];
                const double d = exp((double)c->part[k][j]) / sum - (v == c->label[i]);
                dlogits[c->n * c->begin[k] + j] = c->label[i] < 0 ? 0 : d * (double)c->scale;
            }
    }
}

static void check(int64_t n, int V, int n_parts, enum dtype dt)
{
    struct args c = {.n = n, .V = V, .n_parts = n_parts, .dt = dt, .scale = 0.25f};
    float *logits = new_values(DTYPE_F32, n * V, "logits", 5);
    int32_t *label = new_ints(n, "label", -1, V - 1);
    double *want_loss = new_bytes((size_t)n * sizeof *want_loss);
    double *want = new_bytes((size_t)(n * V) * sizeof *want);
    const size_t bytes = (size_t)n * (sizeof(float) + (size_t)V * dtype_bytes(dt));

    for (int k = 0; k <= n_parts; k++) c.begin[k] = V * k / n_parts;
    for (int k = 0; k < n_parts; k++) c.part[k] = logits + n * c.begin[k];
    c.label = label;
    naive(&c, want_loss, want);
    float *got = run_repeatably("cross_entropy", run, &c, bytes);
    const double e_loss = max_difference(got, DTYPE_F32, want_loss, n);
    const double e_grad = max_difference(got + n, dt, want, n * V) / (double)c.scale;
    /* losses up to 15 and their target in F32; gradients up to scale */
    EXPECT(e_loss < 3e-6 && e_grad < half_ulp(dt) + 5e-7, "n=%ld V=%d parts=%d %s: %.1e, %.1e",
           (long)n, V, n_parts, dtype_name(dt), e_loss, e_grad);
    if (dt == DTYPE_F32) {
        c.in_place = true;
        float *same = run_repeatably("cross_entropy in place", run, &c, bytes);
        EXPECT(memcmp(same, got, bytes) == 0, "n=%ld V=%d: in place", (long)n, V);
        free(same);
    }
    free(logits), free(label), free(want_loss), free(want), free(got);
}

/* Logits far from 0 do not overflow; an ignored row stays zero whatever its logits are; without
 * dlogits the loss is the same. */
static void check_extremes(void)
{
    struct stream *s = backend_cpu.stream_create(1);
    const float logits[] = {1e4f, 1e4f, -1e4f, 0, NAN, INFINITY, 1, 2};
    const int32_t label[] = {1, -1};
    float max[2], sum[2], target[2], loss[2], d[8];
    backend_cpu.cross_entropy_max(s, max, logits, 2, 4);
    backend_cpu.cross_entropy_sum(s, sum, target, logits, max, label, 2, 4, 0);
    backend_cpu.cross_entropy_loss(s, loss, d, DTYPE_F32, logits, max, sum, target, label, 1, 2, 4,
                                   0);
    EXPECT(fabsf(loss[0] - logf(2)) < 1e-6f && loss[1] == 0, "%g %g", (double)loss[0],
           (double)loss[1]);
    EXPECT(d[0] == 0.5f && d[1] == -0.5f && d[2] == 0 && d[3] == 0, "%g %g", (double)d[0],
           (double)d[1]);
    for (int i = 4; i < 8; i++) EXPECT(d[i] == 0, "column %d: %g", i - 4, (double)d[i]);
    loss[0] = -1;
    backend_cpu.cross_entropy_loss(s, loss, NULL, DTYPE_F32, logits, max, sum, target, label, 1, 2,
                                   4, 0);
    EXPECT(fabsf(loss[0] - logf(2)) < 1e-6f, "without dlogits %g", (double)loss[0]);

    const int32_t counted[] = {1, 2}; /* now the broken row counts: it must not look like a loss */
    backend_cpu.cross_entropy_max(s, max, logits, 2, 4);
    backend_cpu.cross_entropy_sum(s, sum, target, logits, max, counted, 2, 4, 0);
    backend_cpu.cross_entropy_loss(s, loss, NULL, DTYPE_F32, logits, max, sum, target, counted, 1,
                                   2, 4, 0);
    EXPECT(!isfinite(loss[1]), "loss %g of a row with NaN", (double)loss[1]);
    backend_cpu.stream_destroy(s);
}

int main(void)
{
    static const int64_t shapes[][2] = {{0, 8}, {1, 1}, {3, 17}, {2, 1030}, {257, 513}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < 2; t++)
            for (int parts = 1; parts <= MAX_PARTS; parts++)
                check(shapes[i][0], (int)shapes[i][1], parts, float_types[t]);
    check_extremes();
    return test_end();
}
