/* The lines for people: exact text of steps, evaluations and the summary; colour only when asked.
 */
// TEST ranks=1 timeout=20
#include "metrics_rig.h"
#include "test.h"
#include "train/console.h"

#include <string.h>

static char *text;
static size_t n_bytes;

static struct console console(double flop_per_token, double peak)
{
    return (struct console){.out = open_memstream(&text, &n_bytes),
                            .n_steps = 250,
                            .flop_per_token = flop_per_token,
                            .peak_flops = peak,
                            .peak_source = "measured F32 products, 2 ranks x 1 thread"};
}

static void expect(struct console *c, const char *want)
{
    fclose(c->out);
    EXPECT(!strcmp(text, want), "\n%s\nexpected\n%s", text, want);
    free(text);
}

static void check_steps(void)
{
    struct step_report r = metrics_report;
    r.loss = 2.31234;
    r.grad_norm = 0.51234;
    r.step = 10;
    r.step_tokens = 2356;
    struct console c = console(25e6, 352e9);
    console_step(&c, &r, 41.2);
    expect(&c, "step:  10/250  loss: 2.31234  grad_norm: 0.5123  lr: 2.0e-03  tps: 4,712  "
               "gflops: 117.8 (33.5% of peak)  load: 1.25  eta: 0:41\n");
    r.loss = NAN;
    r.bad = (struct bad_losses){.n = 3, .rank = 1};
    c = console(25e6, 352e9);
    console_step(&c, &r, 41.2);
    expect(&c, "step:  10/250  loss: nan  not finite: 3, first on rank 1  grad_norm: 0.5123  "
               "lr: 2.0e-03  tps: 4,712  gflops: 117.8 (33.5% of peak)  load: 1.25  eta: 0:41\n");
    r.loss = 2.31234;
    r.bad.n = 0;
    r.n_moe_layers = 0; /* a dense model; the machine's peak unknown: no share of it */
    r.step_s = 1e-5;
    c = console(1e6, 0.0);
    console_step(&c, &r, 3725.0);
    expect(&c, "step:  10/250  loss: 2.31234  grad_norm: 0.5123  lr: 2.0e-03  "
               "tps: 235,600,000  tflops: 235.6  eta: 1:02:05\n");
    c = console(25e6, 0.0);
    r.step = 1;
    r.step_s = 0.5;
    c.colour = true;
    console_step(&c, &r, -1.0);
    EXPECT(strstr(text, "\033["), "no colour in: %s", text);
    EXPECT(strstr(text, "(first step)\n"), "%s", text);
    fclose(c.out);
    free(text);
}

static void check_eval_and_summary(void)
{
    struct console c = console(25e6, 352e9);
    struct eval_report r = {.step = 50,
                            .all = {NULL, 65536, 2.10234},
                            .n_sources = 1,
                            .source = {{"a", 60000, 2.0}, {"b", 5536, 3.21167}},
                            .seconds = 1.234};
    console_eval(&c, &r);
    expect(&c, "eval:  50/250  loss: 2.10234  tokens: 65,536  time: 1.23 s\n");
    c = console(25e6, 352e9);
    r.n_sources = 2;
    console_eval(&c, &r);
    expect(&c, "eval:  50/250  loss: 2.10234  tokens: 65,536  time: 1.23 s  "
               "sources: 2.00000, 3.21167\n");

    struct run_summary s = {.n_steps = 250,
                            .n_tokens = 512000,
                            .wall_s = 108.4,
                            .median_tok_s = 4712.0,
                            .time_s = {0.1, 90.0, 8.0, 2.0, 4.0},
                            .loss = 1.7321,
                            .eval_loss = 1.81234};
    c = console(25e6, 352e9);
    console_summary(&c, &s);
    expect(&c, "done: 250 steps, 512,000 tokens, 1:48\n"
               "  tokens/s   4,712, median of the steps without the first\n"
               "  speed      117.8 of 352.0 GFLOP/s: 33.5% of the peak (measured F32 products, "
               "2 ranks x 1 thread)\n"
               "  time       data 0.10 s, forward and backward 90.00 s, communication 8.00 s, "
               "optimizer 2.00 s, evaluation 4.00 s\n"
               "  loss       1.73210 in the last step, held-out 1.81234 (nats a token)\n");
    s.eval_loss = NAN;
    s.n_skipped = 2;
    c = console(25e6, 0.0);
    console_summary(&c, &s);
    fclose(c.out);
    EXPECT(strstr(text, "117.8 GFLOP/s; the machine's peak is not known\n"), "%s", text);
    EXPECT(strstr(text, "done: 250 steps (2 skipped), 512,000 tokens, 1:48\n"), "%s", text);
    EXPECT(!strstr(text, "held-out") && !strchr(text, '%'), "%s", text);
    free(text);
}

/* The median leaves the first step out: 10 tokens/s, then 1000, 3000 and 2000. */
static void check_median(void)
{
    static const double step_s[] = {100.0, 1.0, 1.0 / 3.0, 0.5};
    char dir[600], line[256] = "";
    snprintf(dir, sizeof dir, "%s/run", test_tmpdir());
    struct config cfg = metrics_config(dir);
    cfg.train.steps = 4;
    const struct mesh mesh = metrics_mesh(0);
    FILE *said = tmpfile();
    fflush(stdout);
    const int terminal = dup(STDOUT_FILENO);
    dup2(fileno(said), STDOUT_FILENO);
    metrics_begin(&cfg, 0);
    struct metrics *mx = metrics_open(&cfg, &mesh, &metrics_identity);
    for (int i = 0; i < 4; i++) {
        struct step_report r = metrics_report;
        r.step = i + 1;
        r.step_tokens = 1000;
        r.step_s = step_s[i];
        metrics_step(mx, &r);
    }
    metrics_close(mx);
    dup2(terminal, STDOUT_FILENO);
    rewind(said);
    bool found = false;
    while (fgets(line, sizeof line, said))
        found |= !strcmp(line, "  tokens/s   2,000, median of the steps without the first\n");
    EXPECT(found, "last line of the summary: %s", line);
    fclose(said);
}

int main(void)
{
    check_steps();
    check_eval_and_summary();
    check_median();
    setenv("NO_COLOR", "1", 1);
    EXPECT(!console_wants_colour(stdout), "colour in spite of NO_COLOR");
    return test_end();
}
