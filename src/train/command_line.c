/* command_line.c - see command_line.h. */
#include "train/command_line.h"

#include "base/text.h"
#include "optim/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 1 << 24 };

/* Returns false. The ranks of a machine have the same command line: one of them speaks. */
__attribute__((format(printf, 2, 3))) static bool wrong(const struct command *command,
                                                        const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    err_printable(why);
    if (err_speak_first())
        fprintf(stderr, "dsv3 %s: %s; see dsv3 %s --help\n", command->name, why, command->name);
    return false;
}

static bool parse_ranks(struct command_line *cl, const char *text)
{
    char *end;
    const long n = text ? strtol(text, &end, 10) : 0;
    if (!text || *end || n < 1 || n > MAX_RANKS) return false;
    cl->n_ranks = (int)n;
    return true;
}

/* The option at argv[0]; returns how many arguments it is, or 0 after a line. */
static int parse_option(struct command_line *cl, const struct command *command, char **argv)
{
    static char verbose[] = "run.verbose=true";
    const char *name = argv[0], *value = argv[1];
    if ((command->options & OPTION_JSON) && !strcmp(name, "--json")) {
        cl->json = true;
        return 1;
    }
    if ((command->options & OPTION_VERBOSE) && !strcmp(name, "--verbose")) {
        cl->overrides[cl->n_overrides++] = verbose;
        return 1;
    }
    if ((command->options & OPTION_RANKS) && !strcmp(name, "--ranks")) {
        if (parse_ranks(cl, value)) return 2;
        return wrong(command, "--ranks: found %s, expected a number of ranks from 1 to %d",
                     value ? value : "nothing", MAX_RANKS);
    }
    if ((command->options & OPTION_MEMORY) && !strcmp(name, "--memory")) {
        if (value && text_try_bytes(value, &cl->memory)) return 2;
        return wrong(command, "--memory: found %s, expected bytes, as 80GiB, 141GB or 80e9",
                     value ? value : "nothing");
    }
    if (strchr(name, '.'))
        return wrong(command, "unknown option %s; a key is set without dashes: section.key=value",
                     name);
    return wrong(command, "unknown option %s", name);
}

/* argv ends with NULL, as that of main does. */
bool command_line_parse(struct command_line *cl, const struct command *command, int argc,
                        char **argv)
{
    *cl = (struct command_line){.overrides = argv};
    for (int i = 0; i < argc;) {
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            const int n = parse_option(cl, command, argv + i);
            if (n == 0) return false;
            i += n;
        } else if (!cl->file) {
            cl->file = argv[i++];
        } else {
            cl->overrides[cl->n_overrides++] = argv[i++];
        }
    }
    if (!cl->file && err_speak_first())
        fprintf(stderr, "%.*s\n", (int)strcspn(command->help, "\n"), command->help);
    if (cl->file && (!*cl->file || !strcmp(cl->file, "-")))
        return wrong(command, "found \"%s\", expected the name of a file", cl->file);
    return cl->file;
}

enum exit_code command_line_load(const struct command_line *cl, struct config *cfg)
{
    struct err_list errs = {0}, warnings = {0};
    config_try_load(cfg, cl->file, cl->n_overrides, cl->overrides, &errs);
    if (cl->n_ranks) config_try_check_ranks(cfg, cl->n_ranks, &errs);
    if (errs.n > 0) fputs(errs.text, stderr);
    if (errs.n > 1) fprintf(stderr, "%d errors in the configuration\n", errs.n);
    if (errs.n == 0) schedule_warn(cfg, &warnings);
    warn_list(&warnings);
    const enum exit_code code = errs.n > 0 ? CODE_CONFIG : CODE_DONE;
    err_free(&errs);
    return code;
}
