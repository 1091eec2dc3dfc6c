/* metrics.jsonl: the exact keys and numbers, whole lines, and only rank 0 writes. */
// TEST ranks=1 timeout=20
#include "base/clock.h"
#include "metrics_rig.h"
#include "test.h"

#include <string.h>

static const char *const before_experts =
    "{\"step\":3,\"tokens\":6144,\"epoch\":[0.25,1.5],\"samples\":48,\"skipped_samples\":16,"
    "\"labels\":[2048,2044],\"loss\":0.10000000000000001,"
    "\"mtp_loss\":2.0,\"balance_loss\":0.0001,\"bad_losses\":0,\"grad_norm\":null,"
    "\"skipped\":1,\"lr\":0.002,\"tok_s\":4096.0,\"step_s\":0.5,\"compute_s\":0.25,"
    "\"comm_s\":0.125,\"memory_bytes\":123456789,\"bytes_intra\":1000000007,\"bytes_inter\":"
    "9007199254740992,";

/* The whole line but for its end. */
static const char *step_text(bool with_counts)
{
    static char text[2048];
    volatile double six = 6, three = 3; /* the compiler's logarithms are not the library's */
    const double first =
        -(1 / six * log(1 / six)) - 2 / six * log(2 / six) - 3 / six * log(3 / six);
    const double second = -(4 / six * log(4 / six)) - 2 / six * log(2 / six);
    snprintf(text, sizeof text,
             "%s\"expert_load\":[1.25,0.33333333333333331],\"expert_unused\":[0,1],"
             "\"expert_entropy\":[%.17g,%.17g],\"expert_bias_min\":[-0.25,0.0],"
             "\"expert_bias_max\":[0.5,0.125],%s\"dropped\":0,\"bias_min\":-0.001,"
             "\"bias_max\":0.001",
             before_experts, first / log(three), second / log(three),
             with_counts ? "\"expert_count\":[[1,2,3],[4,0,2]]," : "");
    return text;
}

/* Cuts the time from the end of every line; it is one between these two. */
static void cut_times(char *text, const char *before, const char *after)
{
    static const char key[] = ",\"time\":\"";
    for (char *line = text, *end; (end = strchr(line, '\n')); line = strchr(line, '\n') + 1) {
        char *at = strstr(line, key), *time = at + strlen(key);
        const size_t n = strlen(before);
        EXPECT(at && at < end && end == time + n + 2 && !strncmp(time + n, "\"}", 2) &&
                   strncmp(time, before, n) >= 0 && strncmp(time, after, n) <= 0,
               "between %s and %s: %s", before, after, line);
        if (at && at < end) memmove(at, end - 1, strlen(end - 1) + 1);
    }
}

static char *read_all(const char *dir)
{
    static char text[1 << 14];
    char path[600];
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    FILE *f = fopen(path, "r");
    EXPECT(f, "no %s", path);
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
    return text;
}

static void check_lines(struct config *cfg)
{
    char want[4096], before[CLOCK_TEXT], after[CLOCK_TEXT];
    clock_utc(before);
    metrics_run(cfg, 0);
    clock_utc(after);
    snprintf(
        want, sizeof want,
        "{\"version\":\"1.2.3\",\"config_hash\":\"0000000000000abc\",\"mesh\":{\"dp\":4,\"tp\":2,"
        "\"ep\":8,\"edp\":1,\"ranks\":8,\"nodes\":2},\"fingerprints\":{\"train\":"
        "\"0000000000000def\",\"heldout\":null},\"params\":{\"total\":33014016,\"active\":"
        "28098816},\"flop_per_token\":0.5,\"peak_flops\":1000000000.0,\"peak_source\":"
        "\"measured F32 products\"}\n%s}\n{\"step\":3,\"eval_loss\":2.5,"
        "\"bad_losses\":0,\"eval_tokens\":65536,\"eval_s\":1.5}\n{\"param_hash\":"
        "\"0000000000005eed\",\"param_l2\":"
        "0.75}\n",
        step_text(false));
    char *got = read_all(cfg->run.dir);
    cut_times(got, before, after);
    EXPECT(!strcmp(got, want), "\n%s\nexpected\n%s", got, want);
    cfg->run.overwrite = true; /* starts afresh; the debug keys come in */
    cfg->debug.token_hash = true;
    cfg->debug.dump_step = 3;
    metrics_run(cfg, 0);
    snprintf(want, sizeof want, "%s,\"token_hash\":\"123456789abcdef0\"}\n", step_text(true));
    got = read_all(cfg->run.dir);
    cut_times(got, before, clock_utc(after));
    EXPECT(strstr(got, want), "%s\nlacks\n%s", got, want);
    int n_lines = 0;
    for (const char *at = got; (at = strchr(at, '\n')); at++) n_lines++;
    EXPECT(n_lines == 4, "%d lines after overwriting", n_lines);
}

int main(void)
{
    char dir[600];
    snprintf(dir, sizeof dir, "%s/a/b/run", test_tmpdir());
    struct config cfg = metrics_config(dir);
    metrics_run(&cfg, 1);
    EXPECT(access(dir, F_OK) != 0, "rank 1 made %s", dir);
    check_lines(&cfg);
    return test_end();
}
