/*
 * config.c - fuzz target: a configuration file and overrides. Each byte 0xff, which no YAML holds,
 * ends the file or an override. What is accepted must be handed on to other ranks unchanged.
 */
#include "fuzz.h"

#include "config/config.h"

enum { MAX_OVERRIDES = 8 };

/* As training does: what can run on so many ranks is handed on to them. */
static void check_hand_on(const struct config *cfg, int n_ranks)
{
    struct config again;
    struct err_list errs = {0};
    if (config_try_check_ranks(cfg, n_ranks, &errs) != 0) {
        err_free(&errs);
        return;
    }
    char *text = config_to_text(cfg);
    config_from_text(&again, text);
    EXPECT(config_hash(cfg) == config_hash(&again), "changes on reading back:\n%s", text);
    free(text);
    config_free(&again);
}

static int n_lines(const char *text)
{
    int n = 0;
    for (; text && *text; text++) n += *text == '\n';
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char *overrides[MAX_OVERRIDES];
    struct config cfg;
    struct err_list errs = {0};
    int n_overrides = 0;
    char *text = malloc(n + 1);
    memcpy(text, bytes, n);
    text[n] = '\0';
    char *end = memchr(text, 0xff, n);
    const size_t n_file = end ? (size_t)(end - text) : n;
    while (end && n_overrides < MAX_OVERRIDES) {
        *end = '\0';
        overrides[n_overrides++] = end + 1;
        end = memchr(end + 1, 0xff, (size_t)(text + n - (end + 1)));
    }
    const int bad = config_try_load(&cfg, fuzz_file("config.yaml", text, n_file), n_overrides,
                                    overrides, &errs);
    EXPECT(bad == (errs.n ? -1 : 0), "returned %d with %d faults", bad, errs.n);
    EXPECT(errs.n <= 101, "%d faults listed", errs.n); /* MAX_FAULTS and a line that says so */
    EXPECT(n_lines(errs.text) == errs.n, "%d faults not in as many lines: %s", errs.n, errs.text);
    for (int n_ranks = 1; !bad && n_ranks <= 8; n_ranks *= 2) check_hand_on(&cfg, n_ranks);
    err_free(&errs);
    config_free(&cfg);
    free(text);
    return 0;
}
