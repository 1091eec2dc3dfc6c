/* A share of peak is never told without the peak: the header has the number, the dtype that was
 * measured and how; where no peak is known, speed is told in FLOP/s and no share of anything. */
// TEST ranks=1 timeout=30
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

/* The header of a whole run, and of one on a device whose peak nobody has measured. */
static void check_header(const char *dtype, const char *products)
{
    static struct run_rig rig;
    char overrides[64], line[256];
    snprintf(overrides, sizeof overrides, "train.compute_dtype=%s", dtype);
    run_rig_init(&rig, dtype, overrides);
    EXPECT(rig.run.peak_flops > 1e8, "a peak of %g FLOP/s", rig.run.peak_flops);
    capture_begin();
    run_print_summary(&rig.run);
    snprintf(line, sizeof line,
             "\npeak    %.1f GFLOP/s (measured %s products, 1 ranks x 1 threads)\n",
             rig.run.peak_flops * 1e-9, products);
    expect_line(capture_end(), line);
    rig.run.peak_flops = 0;
    capture_begin();
    run_print_summary(&rig.run);
    const char *text = capture_end();
    expect_line(text, "\npeak    unknown: speed is told without a share of it\n");
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
    MPI_Init(&argc, &argv);
    run_rig_data();
    check_header("f32", "F32");
    check_header("bf16", "BF16");
    check_reports();
    return test_end();
}
