/* A share of peak is never told without the peak: the header has the number, the dtype that was
 * measured and how; where no peak is known, speed is told in FLOP/s and no share of anything. */
// TEST ranks=1 timeout=30
#include "base/clock.h"
#include "kernel_case.h"
#include "metrics_rig.h"
#include "run_rig.h"

#include <string.h>

static FILE *said;
static int kept_stdout;

static void capture_begin(void)
{
    fflush(stdout);
    said = tmpfile();
    kept_stdout = dup(STDOUT_FILENO);
    dup2(fileno(said), STDOUT_FILENO);
}

/* What was printed since capture_begin. */
static const char *capture_end(void)
{
    static char text[1 << 14];
    fflush(stdout);
    dup2(kept_stdout, STDOUT_FILENO);
    close(kept_stdout);
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = '\0';
    fclose(said);
    return text;
}

static void expect_line(const char *text, const char *line)
{
    EXPECT(strstr(text, line), "'%s' is not in:\n%s", line, text);
}

/* FLOP/s of the best of a few dense products. */
static double product_flops(enum dtype dt)
{
    const struct linear_shape shape = {.N = 512, .in = 512, .out = 512};
    const int64_t n = 512 * 512;
    struct stream *s = backend_cpu.stream_create(1);
    void *x = case_random(dt, n, 1), *w = case_random(dt, n, 2), *y = case_random(dt, n, 3);
    double best_s = 1e9;
    for (int i = 0; i < 10; i++) {
        const double start = clock_s();
        backend_cpu.linear_fwd(s, y, dt, x, w, dt, &shape);
        best_s = fmin(best_s, clock_s() - start);
    }
    mem_free(x);
    mem_free(w);
    mem_free(y);
    backend_cpu.stream_destroy(s);
    return 2.0 * (double)n * 512 / best_s;
}

/* The header of a whole run, and of one on a device whose peak nobody has measured. */
static void check_header(enum dtype dt, const char *products)
{
    static struct run_rig rig;
    char overrides[64], line[256];
    snprintf(overrides, sizeof overrides, "train.compute_dtype=%s", dtype_name(dt));
    run_rig_init(&rig, products, overrides);
    /* Not that of another device; a busy machine may be some times slower in one of the two. */
    const double flops = product_flops(dt), peak = rig.run.peak_flops;
    EXPECT(peak > flops / 50 && peak < flops * 50, "peak %g, a product of 512^3 %g", peak, flops);
    capture_begin();
    run_print_summary(&rig.run);
    snprintf(line, sizeof line,
             "\npeak    %.1f GFLOP/s (measured %s products, 1 rank x 1 thread)\n", peak * 1e-9,
             products);
    expect_line(capture_end(), line);
    rig.run.peak_flops = 0;
    capture_begin();
    run_print_summary(&rig.run);
    const char *text = capture_end();
    expect_line(text, "\npeak    unknown: utilisation not reported\n");
    EXPECT(!strstr(text, "GFLOP/s"), "%s", text);
    run_rig_free(&rig);
}

/* A step and the summary of a run of 1 MFLOP a token and 4096 tokens/s. */
static const char *report(const char *name, double peak_flops, const char *source)
{
    char dir[600];
    snprintf(dir, sizeof dir, "%s/%s", test_tmpdir(), name);
    const struct config cfg = metrics_config(dir);
    const struct mesh mesh = metrics_mesh(0);
    struct run_identity id = metrics_identity;
    id.flop_per_token = 1e6;
    id.peak_flops = peak_flops;
    id.peak_source = source;
    metrics_begin(&cfg, 0);
    capture_begin();
    struct metrics *mx = metrics_open(&cfg, &mesh, &id);
    metrics_step(mx, &metrics_report);
    metrics_close(mx);
    return capture_end();
}

static void expect_identity(const char *name, const char *words)
{
    char path[700], line[2048] = "";
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", test_tmpdir(), name);
    FILE *in = fopen(path, "r");
    EXPECT(in && fgets(line, sizeof line, in), "nothing in %s", path);
    if (in) fclose(in);
    expect_line(line, words);
}

static void check_reports(void)
{
    const char *text = report("known", 16.384e9, "measured BF16 products, 8 ranks x 2 threads");
    expect_line(text, "tps: 4,096  gflops: 4.1 (25.0% of peak)");
    expect_line(text,
                "  speed      4.1 of 16.4 GFLOP/s: 25.0% of the peak (measured BF16 products, "
                "8 ranks x 2 threads)\n");
    expect_identity("known", "\"peak_flops\":16384000000.0,\"peak_source\":\"measured BF16 "
                             "products, 8 ranks x 2 threads\"");
    text = report("unknown", 0, "not measured");
    expect_line(text, "tps: 4,096  gflops: 4.1  load");
    expect_line(text, "  speed      4.1 GFLOP/s; the machine's peak is not known\n");
    EXPECT(!strchr(text, '%'), "a share of nothing: %s", text);
    expect_identity("unknown", "\"peak_flops\":null");
}

int main(int argc, char **argv)
{
    run_rig_begin(&argc, &argv);
    check_header(DTYPE_F32, "F32");
    check_header(DTYPE_BF16, "BF16");
    check_reports();
    return test_end();
}
