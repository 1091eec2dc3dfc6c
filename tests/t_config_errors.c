/* Every kind of fault in a configuration gives exactly the recorded messages: place, what was
 * found, what was expected, and what was probably meant. One file a kind in tests/golden/config. */
// TEST ranks=1 timeout=30
#include "config/config.h"
#include "test.h"

#include <dirent.h>
#include <string.h>

#define DIR_NAME "tests/golden/config/"
enum { MAX_TEXT = 1 << 16, MAX_OVERRIDES = 16 };

/* What a case asks for in comments: "# ranks: N", "# override: section.key=value". */
struct setup {
    int n_ranks, n_overrides;
    char *override[MAX_OVERRIDES];
};

static char *read_text(const char *path)
{
    char *text = calloc(1, MAX_TEXT);
    FILE *in = fopen(path, "rb");
    EXPECT(in, "cannot read %s", path);
    if (!in) return text;
    const size_t n = fread(text, 1, MAX_TEXT - 1, in);
    EXPECT(n < MAX_TEXT - 1, "%s is larger than the test expects", path);
    fclose(in);
    return text;
}

static void read_setup(struct setup *setup, char *text)
{
    memset(setup, 0, sizeof *setup);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        sscanf(line, "# ranks: %d", &setup->n_ranks);
        if (!strncmp(line, "# override: ", 12) && setup->n_overrides < MAX_OVERRIDES)
            setup->override[setup->n_overrides++] = line + 12;
    }
}

/* The directory's name does not belong to the messages. */
static void remove_all(char *text, const char *what)
{
    const size_t n = strlen(what);
    for (char *at = text; (at = strstr(at, what));) memmove(at, at + n, strlen(at + n) + 1);
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");
    EXPECT(out && fputs(text, out) >= 0 && !fclose(out), "cannot write %s", path);
}

static void check_case(const char *name)
{
    char path[512], expected_path[512];
    struct config cfg;
    struct err_list errs = {0};
    struct setup setup;
    snprintf(path, sizeof path, DIR_NAME "%s.yaml", name);
    snprintf(expected_path, sizeof expected_path, DIR_NAME "%s.err", name);
    char *text = read_text(path);
    read_setup(&setup, text);

    const int bad = config_try_load(&cfg, path, setup.n_overrides, setup.override, &errs);
    EXPECT(bad == (errs.n ? -1 : 0), "%s: returned %d with %d faults", name, bad, errs.n);
    if (setup.n_ranks) config_try_check_ranks(&cfg, setup.n_ranks, &errs);
    EXPECT(errs.n > 0, "%s: no fault found", name);
    if (errs.text) remove_all(errs.text, DIR_NAME);

    if (getenv("DSV3_GOLDEN_WRITE") && errs.text) write_text(expected_path, errs.text);
    char *expected = read_text(expected_path);
    EXPECT(errs.text && !strcmp(errs.text, expected), "%s\n--- expected\n%s--- found\n%s", name,
           expected, errs.text ? errs.text : "");
    free(text);
    free(expected);
    err_free(&errs);
    config_free(&cfg);
}

int main(void)
{
    int n = 0;
    DIR *dir = opendir(DIR_NAME);
    EXPECT(dir, "cannot read %s", DIR_NAME);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".yaml")) continue;
        *dot = '\0';
        check_case(entry->d_name);
        n++;
    }
    if (dir) closedir(dir);
    EXPECT(n > 50, "only %d cases were found", n);
    return test_end();
}
