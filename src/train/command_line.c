/* command_line.c - see command_line.h. */
#include "train/command_line.h"

#include "optim/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 1 << 24 };

static bool parse_ranks(struct command_line *cl, const char *text)
{
    char *end;
    const long n = text ? strtol(text, &end, 10) : 0;
    if (!text || *end || n < 1 || n > MAX_RANKS) return false;
    cl->n_ranks = (int)n;
    return true;
}

bool command_line_parse(struct command_line *cl, const char *command, const char *usage, int argc,
                        char **argv)
{
    *cl = (struct command_line){.overrides = argv};
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            cl->json = true;
        } else if (!strcmp(argv[i], "--ranks")) {
            const char *text = i + 1 < argc ? argv[++i] : NULL;
            if (parse_ranks(cl, text)) continue;
            fprintf(stderr, "dsv3 %s: --ranks: found %s, expected a number of ranks from 1 to %d\n",
                    command, text ? text : "nothing", MAX_RANKS);
            return false;
        } else if (*argv[i] == '-') {
            fprintf(stderr, "dsv3 %s: unknown option %s; usage: %s\n", command, argv[i], usage);
            return false;
        } else if (!cl->file) {
            cl->file = argv[i];
        } else {
            cl->overrides[cl->n_overrides++] = argv[i];
        }
    }
    if (!cl->file) fprintf(stderr, "usage: %s\n", usage);
    return cl->file;
}

enum exit_code command_line_load(const struct command_line *cl, struct config *cfg)
{
    struct err_list errs = {0}, warnings = {0};
    config_try_load(cfg, cl->file, cl->n_overrides, cl->overrides, &errs);
    if (cl->n_ranks) config_try_check_ranks(cfg, cl->n_ranks, &errs);
    if (errs.n > 0) {
        fputs(errs.text, stderr);
        fprintf(stderr, "%d fault%s in the configuration\n", errs.n, errs.n == 1 ? "" : "s");
    }
    if (errs.n == 0) schedule_warn(cfg, &warnings);
    warn_list(&warnings);
    const enum exit_code code = errs.n > 0 ? CODE_CONFIG : CODE_DONE;
    err_free(&errs);
    return code;
}
