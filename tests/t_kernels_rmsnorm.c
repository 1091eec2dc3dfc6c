/* RMSNorm forward and backward against double loops, rows close together and apart. */
// TEST ranks=1 timeout=30
#include "kernels.h"

struct args {
    struct norm_shape shape;
    enum dtype dt;
    bool accumulate;
    const void *x, *dy, *dx0;
    const float *g, *dg0, *rstd;
};

static const float EPS = 1e-6f;

/* out: rstd [N], then y [N, stride] */
static void run_fwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    float *rstd = out;
    backend_cpu.rmsnorm_fwd(s, rstd + c->shape.N, rstd, c->x, c->g, c->dt, &c->shape);
}

/* out: dg [D], then dx [N, stride] */
static void run_bwd(struct stream *s, void *out, const void *p)
{
    const struct args *c = p;
    float *dg = out;
    void *dx = dg + c->shape.D;
    memcpy(dg, c->dg0, (size_t)c->shape.D * sizeof *dg);
    memcpy(dx, c->dx0, (size_t)(c->shape.N * c->shape.x_stride) * dtype_bytes(c->dt));
    backend_cpu.rmsnorm_bwd(s, dx, dg, c->dy, c->x, c->rstd, c->g, c->dt, &c->shape, c->accumulate);
}

/* want_dx [N * x_stride] and want_dg [D] in double; elements between the rows are dx0's. Returns
 * the size of the terms of dx: those of a narrow row nearly cancel. */
static double naive_bwd(const struct args *c, double *want_dx, double *want_dg)
{
    const int D = c->shape.D;
    double most = c->accumulate ? 2 : 1e-30;
    for (int d = 0; d < D; d++) want_dg[d] = (double)c->dg0[d];
    for (int64_t n = 0; n < c->shape.N; n++) {
        const int64_t at = n * c->shape.x_stride, from = n * c->shape.y_stride;
        double squares = 0, dot = 0;
        for (int d = 0; d < D; d++) squares += pow(get(c->x, c->dt, at + d), 2);
        const double r = 1 / sqrt(squares / D + (double)EPS);
        for (int d = 0; d < D; d++)
            dot += get(c->dy, c->dt, from + d) * (double)c->g[d] * get(c->x, c->dt, at + d) * r;
        for (int d = 0; d < D; d++) {
            const double h = get(c->x, c->dt, at + d) * r, dy = get(c->dy, c->dt, from + d);
            const double dx = r * (dy * (double)c->g[d] - h * dot / D);
            want_dx[at + d] = (c->accumulate ? want_dx[at + d] : 0) + dx;
            want_dg[d] += dy * h;
            most = fmax(most, fabs(r * dy * (double)c->g[d]));
        }
    }
    return most;
}

static void check_fwd(const struct args *c, const float *got_rstd, double *rstd)
{
    const int64_t stride = c->shape.y_stride;
    const int D = c->shape.D;
    const void *y = got_rstd + c->shape.N;
    for (int64_t n = 0; n < c->shape.N; n++) {
        double squares = 0, worst = 0;
        for (int d = 0; d < D; d++) squares += pow(get(c->x, c->dt, n * c->shape.x_stride + d), 2);
        rstd[n] = 1 / sqrt(squares / D + (double)EPS);
        for (int d = 0; d < D; d++) {
            const double want = get(c->x, c->dt, n * c->shape.x_stride + d) * rstd[n];
            const double got = get(y, c->dt, n * stride + d), g = (double)c->g[d];
            worst = fmax(worst, fabs(got - want * g) / fabs(want * g));
        }
        for (int64_t d = D; d < stride; d++)
            EXPECT(isnan(get(y, c->dt, n * stride + d)), "row %ld: wrote between rows", (long)n);
        /* one rounding of the result, and an F32 sum of up to 512 squares, in any order */
        EXPECT(worst <= half_ulp(c->dt) + 2e-6, "N=%ld D=%d %s: error %.2e", (long)c->shape.N, D,
               dtype_name(c->dt), worst);
    }
    EXPECT(max_error(got_rstd, DTYPE_F32, rstd, c->shape.N) < 2e-6, "rstd"); /* that sum */
}

static void check(int64_t N, int D, enum dtype dt, int gap, bool accumulate)
{
    const int64_t x_stride = D + gap, y_stride = D + 2 * gap;
    struct args c = {.shape = {N, D, x_stride, y_stride, EPS}, .dt = dt, .accumulate = accumulate};
    void *x = new_values(dt, N * x_stride, "x", 2), *dy = new_values(dt, N * y_stride, "dy", 1);
    void *dx0 = new_values(dt, N * x_stride, "dx", 1);
    float *g = new_values(DTYPE_F32, D, "g", 1.5), *dg0 = new_values(DTYPE_F32, D, "dg", 1);
    double *rstd = new_bytes((size_t)N * sizeof *rstd);
    double *want_dx = new_doubles(dx0, dt, N * x_stride);
    double *want_dg = new_doubles(dg0, DTYPE_F32, D);
    const size_t y_bytes = (size_t)(N * y_stride) * dtype_bytes(dt);
    const size_t dx_bytes = (size_t)(N * x_stride) * dtype_bytes(dt);

    c.x = x, c.dy = dy, c.dx0 = dx0, c.g = g, c.dg0 = dg0;
    float *y = run_repeatably("rmsnorm_fwd", run_fwd, &c, (size_t)N * sizeof *y + y_bytes);
    c.rstd = y;
    check_fwd(&c, y, rstd);
    float *dg = run_repeatably("rmsnorm_bwd", run_bwd, &c, (size_t)D * sizeof *dg + dx_bytes);
    const double most = naive_bwd(&c, want_dx, want_dg);
    const double dx_error = max_difference(dg + D, dt, want_dx, N * x_stride) / most;
    const double dg_error = max_error(dg, DTYPE_F32, want_dg, D);
    /* F32 sums over 577 columns and 257 tokens: some ten units of 2^-24; dx is rounded once */
    EXPECT(dx_error < half_ulp(dt) + 1e-6, "N=%ld D=%d %s: dx error %.2e", (long)N, D,
           dtype_name(dt), dx_error);
    EXPECT(dg_error < 3e-6, "N=%ld D=%d %s: dg error %.2e", (long)N, D, dtype_name(dt), dg_error);
    free(x), free(dy), free(dx0), free(g), free(dg0), free(rstd), free(want_dx), free(want_dg);
    free(y), free(dg);
}

/* Rows as small as eps: zeros give 1 / sqrt(eps) and no NaN, 1e-3 gives 1 / sqrt(2 eps). */
static void check_eps(void)
{
    enum { D = 20 };
    struct stream *s = backend_cpu.stream_create(1);
    const struct norm_shape shape = {2, D, 0, 0, EPS};
    float x[2 * D] = {0}, ones[2 * D], y[2 * D], rstd[2], dx[2 * D], dg[D] = {0};
    for (int d = 0; d < D; d++) x[D + d] = 1e-3f, ones[d] = ones[D + d] = 1;
    backend_cpu.rmsnorm_fwd(s, y, rstd, x, ones, DTYPE_F32, &shape);
    EXPECT(fabsf(rstd[0] - 1000) < 1e-3f && y[0] == 0, "%g %g", (double)rstd[0], (double)y[0]);
    EXPECT(fabs((double)rstd[1] - 1000 / sqrt(2)) < 1e-3, "%g", (double)rstd[1]);
    backend_cpu.rmsnorm_bwd(s, dx, dg, ones, x, rstd, ones, DTYPE_F32, &shape, false);
    EXPECT(dx[0] == rstd[0], "the gradient of a zero row is rstd * g, not %g", (double)dx[0]);
    backend_cpu.stream_destroy(s);
}

int main(void)
{
    check_eps();
    for (int i = 0; i < N_ROW_SHAPES; i++)
        for (int t = 0; t < 2; t++)
            for (int gap = 0; gap < 8; gap += 5)
                check(row_shapes[i].N, row_shapes[i].D, float_types[t], gap, gap > 0);
    return test_end();
}
