/* options.c - what dsv3-ckpt is asked to do; see commands.h. */
#include "commands.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which options belong to which command. */
static const struct {
    const char *command, *letters;
} allowed[] = {{"prune", "led"}, {"export", "tskv"}, {"import", "m"}};

int usage_error(const char *fmt, const char *what)
{
    fputs("dsv3-ckpt: ", stderr);
    fprintf(stderr, fmt, what);
    fputs("; see dsv3-ckpt --help\n", stderr);
    return CODE_USAGE;
}

static int parse_count(const char *option, int64_t max, int64_t *value)
{
    char *end;
    *value = strtoll(optarg, &end, 10);
    if (end != optarg && *end == '\0' && *value > 0 && *value <= max) return 0;
    return usage_error("%s wants a number from 1 on", option);
}

static int parse_dtype(struct options *o)
{
    o->is_bf16 = !strcmp(optarg, "bf16");
    if (o->is_bf16 || !strcmp(optarg, "f32")) return 0;
    return usage_error("--dtype %s is neither bf16 nor f32", optarg);
}

/* letter: what getopt_long gave for option. */
static int parse_option(struct options *o, int letter, const char *option)
{
    int64_t n = 0;
    switch (letter) {
    case 'l':
        if (parse_count("--keep-last", INT_MAX, &n)) return -1;
        o->keep_last = (int)n;
        return 0;
    case 'e': return parse_count("--keep-every", INT64_MAX, &o->keep_every);
    case 'd': o->dry_run = true; return 0;
    case 't': return parse_dtype(o);
    case 's': return parse_count("--shard-bytes", INT64_MAX, &o->shard_bytes);
    case 'k': o->tokenizer = optarg; return 0;
    case 'v': return parse_count("--max-vocab", INT64_C(1) << 32, &o->max_vocab);
    case 'm': o->model = optarg; return 0;
    case 'h': o->help = true; return 0;
    case 'V': o->version = true; return 0;
    case ':': return usage_error("%s needs a value", option);
    default: return usage_error("unknown option %s", option);
    }
}

static bool is_allowed(const char *command, int letter)
{
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (!strcmp(allowed[i].command, command)) return strchr(allowed[i].letters, letter);
    return false;
}

int options_parse(struct options *o, int argc, char **argv)
{
    static const struct option table[] = {{"keep-last", required_argument, NULL, 'l'},
                                          {"keep-every", required_argument, NULL, 'e'},
                                          {"dry-run", no_argument, NULL, 'd'},
                                          {"dtype", required_argument, NULL, 't'},
                                          {"shard-bytes", required_argument, NULL, 's'},
                                          {"tokenizer", required_argument, NULL, 'k'},
                                          {"max-vocab", required_argument, NULL, 'v'},
                                          {"model", required_argument, NULL, 'm'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
    char given[64] = "";
    int letter;
    *o = (struct options){.keep_last = -1, .shard_bytes = 5000000000, .is_bf16 = true};
    while ((letter = getopt_long(argc, argv, ":h", table, NULL)) != -1) {
        if (parse_option(o, letter, argv[optind - 1]) != 0) return -1;
        if (strlen(given) < sizeof given - 1) given[strlen(given)] = (char)letter;
    }
    if (o->help || o->version) return 0;
    if (optind == argc) return usage_error("%s", "no command"), -1;
    o->command = argv[optind];
    o->arg = argv + optind + 1;
    o->n_args = argc - optind - 1;
    for (const char *g = given; *g; g++)
        if (!is_allowed(o->command, *g))
            return usage_error("an option does not belong to %s", o->command), -1;
    if (o->max_vocab && !o->tokenizer)
        return usage_error("%s needs --tokenizer", "--max-vocab"), -1;
    if (!strcmp(o->command, "prune") && o->keep_last < 0)
        return usage_error("%s wants --keep-last N", o->command), -1;
    return 0;
}
