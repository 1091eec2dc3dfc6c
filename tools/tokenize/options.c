/* options.c - what dsv3-tokenize is asked to do; see tokenize.h. */
#include "tokenize.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES_VOCAB = 512 };

static int usage_error(const char *fmt, const char *what)
{
    fprintf(stderr, "dsv3-tokenize: ");
    fprintf(stderr, fmt, what);
    fprintf(stderr, "; see dsv3-tokenize --help\n");
    return -1;
}

static bool is_shard_path(const char *path)
{
    const size_t n = strlen(path), n_suffix = strlen(SHARD_SUFFIX);
    return n > n_suffix && strcmp(path + n - n_suffix, SHARD_SUFFIX) == 0;
}

static int parse_count(const char *text, int64_t min, int64_t max, int64_t *value)
{
    char *end;
    *value = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && *value >= min && *value <= max) return 0;
    return usage_error("%s is not a number in the range of its option", text);
}

static int parse_fraction(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && *end == '\0' && *value > 0 && *value < 1) return 0;
    return usage_error("--heldout-fraction %s is not between 0 and 1", text);
}

static int parse_format(const char *text, enum data_format *format)
{
    if (shard_find_format(text, format)) return 0;
    return usage_error("--format %s is none of native, megatron, llmc, datatrove, npy, u16, u32",
                       text);
}

/* letter: what getopt_long gave for option. */
static int parse_option(struct options *o, int letter, const char *option)
{
    int64_t level;
    switch (letter) {
    case 'o': o->out = optarg; return 0;
    case 'y': o->heldout = optarg; return 0;
    case 's': o->separator = optarg; return 0;
    case 'j': o->json_key = optarg; return 0;
    case 'T': o->tokenizer = optarg; return 0;
    case 'm': return parse_count(optarg, 1, INT64_C(1) << 32, &o->max_vocab);
    case 'e': o->eod = optarg; return 0;
    case 'b': o->bos = optarg; return 0;
    case 'F': return parse_format(optarg, &o->as.format);
    case 'x': return parse_fraction(optarg, &o->fraction);
    case 'n': return parse_count(optarg, 1, INT64_C(1) << 32, &o->vocab);
    case 't': return parse_count(optarg, 1, INT64_MAX, &o->shard_tokens);
    case 'l':
        if (parse_count(optarg, 1, 22, &level) != 0) return -1;
        o->level = (int)level;
        return 0;
    case 'a': o->any_bytes = true; return 0;
    case 'k': o->skip_bad_lines = true; return 0;
    case 'f': o->force = true; return 0;
    case 'v': o->verify = true; return 0;
    case 'd': o->decode = true; return 0;
    case 'h': o->help = true; return 0;
    case 'V': o->version = true; return 0;
    case ':': return usage_error("%s needs a value", option);
    default: return usage_error("unknown option %s", option);
    }
}

static int check_tokenizer(const struct options *o)
{
    if (o->tokenizer) return 0;
    if (o->max_vocab) return usage_error("%s", "--max-vocab needs --tokenizer");
    if (o->eod || o->bos) return usage_error("%s", "--eod and --bos need --tokenizer");
    if (o->vocab && o->vocab < 257)
        return usage_error("%s", "--vocab is not a number from 257 on, as bytes need");
    return 0;
}

static int check_options(const struct options *o)
{
    if (o->separator && strchr(o->separator, '\n'))
        return usage_error("%s", "--separator is one line");
    if (o->verify || o->decode) {
        if (o->verify && o->decode) return usage_error("%s", "--verify or --decode, not both");
        if (o->n_paths > 0 && !o->out) return check_tokenizer(o);
        return usage_error("%s needs shards, no --out", o->verify ? "--verify" : "--decode");
    }
    if (!o->out) return usage_error("%s", "--out is missing");
    if (!is_shard_path(o->out)) return usage_error("--out %s does not end in .tok.zst", o->out);
    if (o->heldout && !is_shard_path(o->heldout))
        return usage_error("--heldout %s does not end in .tok.zst", o->heldout);
    if (o->heldout && strcmp(o->heldout, o->out) == 0)
        return usage_error("--heldout and --out are both %s", o->out);
    if (o->separator && o->json_key)
        return usage_error("%s", "--separator or --json-key, not both");
    if (o->skip_bad_lines && !o->json_key)
        return usage_error("%s", "--skip-bad-lines needs --json-key");
    return check_tokenizer(o);
}

int options_parse(struct options *o, int argc, char **argv)
{
    static char standard_input[] = "-", *only_standard_input[] = {standard_input};
    static const struct option table[] = {{"out", required_argument, NULL, 'o'},
                                          {"heldout", required_argument, NULL, 'y'},
                                          {"separator", required_argument, NULL, 's'},
                                          {"json-key", required_argument, NULL, 'j'},
                                          {"tokenizer", required_argument, NULL, 'T'},
                                          {"max-vocab", required_argument, NULL, 'm'},
                                          {"eod", required_argument, NULL, 'e'},
                                          {"bos", required_argument, NULL, 'b'},
                                          {"format", required_argument, NULL, 'F'},
                                          {"heldout-fraction", required_argument, NULL, 'x'},
                                          {"vocab", required_argument, NULL, 'n'},
                                          {"shard-tokens", required_argument, NULL, 't'},
                                          {"level", required_argument, NULL, 'l'},
                                          {"any-bytes", no_argument, NULL, 'a'},
                                          {"skip-bad-lines", no_argument, NULL, 'k'},
                                          {"force", no_argument, NULL, 'f'},
                                          {"verify", no_argument, NULL, 'v'},
                                          {"decode", no_argument, NULL, 'd'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
    int letter;

    *o = (struct options){.fraction = 0.05, .level = 3, .as = {.eod_id = -1, .bos_id = -1}};
    while ((letter = getopt_long(argc, argv, ":h", table, NULL)) != -1)
        if (parse_option(o, letter, argv[optind - 1]) != 0) return -1;
    if (o->help || o->version) return 0;
    o->path = argv + optind;
    o->n_paths = argc - optind;
    if (!o->tokenizer && !o->vocab && !o->verify && !o->decode) o->vocab = BYTES_VOCAB;
    if (o->n_paths == 0 && !o->verify && !o->decode) {
        if (isatty(STDIN_FILENO)) return usage_error("%s", "no text given");
        o->path = only_standard_input;
        o->n_paths = 1;
    }
    return check_options(o);
}

struct tokenizer *options_tokenizer(const struct options *o)
{
    struct fault fault;

    if (!o->tokenizer) return tokenizer_init_bytes();
    struct tokenizer *tok = tokenizer_try_load(o->tokenizer, o->max_vocab, &fault);
    CHECK_CODE(fault.code, tok, "%s", fault.why);
    return tok;
}
