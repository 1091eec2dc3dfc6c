/* cmd_generate.c - `dsv3 generate`: a checkpoint continues a text, on one rank or several. */
#include "train/commands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/place.h"
#include "base/signals.h"
#include "base/text.h"
#include "ckpt/store.h"
#include "topo/wait.h"
#include "train/generate.h"
#include "train/launch.h"
#include "train/stop.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_AT_ONCE = 256 }; /* tokens of a prompt that go through the model together */

static const char help[] =
    "usage: dsv3 generate RUN [options] [section.key=value ...]\n"
    "\n"
    "Prints a text and what the model of a checkpoint makes of it. RUN is a run's directory (its\n"
    "newest checkpoint) or the directory of one checkpoint.\n"
    "\n"
    "Options:\n"
    "  --prompt TEXT        the text to continue; without it: the beginning of a document\n"
    "  --tokens N           at most so many tokens, fewer when the document ends: 64\n"
    "  --temperature X      0: always the most likely token; 1: as the model says: 0\n"
    "  --top-p X            draw from the fewest tokens that have this probability: 1\n"
    "  --seed N             of the draw: 1\n"
    "  --tokenizer FILE     tokenizer.json of the training data; default: RUN/tokenizer.json, if "
    "it\n"
    "                       is there, or bytes. It must be the one that made the shards\n"
    "  --prompt-ids 1,2,3   ids instead of a text; then ids are printed, a line, and no tokenizer "
    "is\n"
    "                       needed\n"
    "  section.key=value    settings, as train.compute_dtype=bf16, topology.tp=2; by default "
    "experts\n"
    "                       are shared by all ranks (ep), if that divides them\n"
    "  -h, --help           this page\n"
    "\n"
    "Examples:\n"
    "  dsv3 generate runs/demo --prompt 'In the beginning'\n"
    "  mpirun -np 2 dsv3 generate runs/demo --temperature 0.8 --top-p 0.95 --seed 7\n";

struct request {
    const char *run, *prompt, *ids, *tokenizer;
    struct sampling how;
    int n_overrides;
    char **overrides;
};

/* What rank 0 has found, and all know. */
struct found {
    char dir[CKPT_PATH];
    struct manifest manifest;
    struct config cfg;
    struct tokenizer *tok; /* rank 0; NULL: ids in, ids out */
    int n_prompt;
    int32_t *prompt;
};

static bool wrong(const char *what, const char *text)
{
    if (err_speak_first())
        fprintf(stderr, "dsv3 generate: %s%s; see dsv3 generate --help\n", what, text ? text : "");
    return false;
}

static bool parse_number(const char *option, const char *text, double low, double high,
                         double *value)
{
    char *end;
    char what[160];
    *value = strtod(text, &end);
    if (end != text && !*end && *value >= low && *value <= high) return true;
    snprintf(what, sizeof what, "--%s: expected a number from %g to %g, found ", option, low, high);
    return wrong(what, text);
}

static bool parse_option(struct request *r, int letter)
{
    double x = 0;
    switch (letter) {
    case 'p': r->prompt = optarg; return true;
    case 'i': r->ids = optarg; return true;
    case 'T': r->tokenizer = optarg; return true;
    case 't': return parse_number("temperature", optarg, 0, 100, &r->how.temperature);
    case 'P': return parse_number("top-p", optarg, 0, 1, &r->how.top_p);
    case 'n':
        if (!parse_number("tokens", optarg, 1, 1 << 24, &x)) return false;
        r->how.max_tokens = (int)x;
        return true;
    case 's':
        if (!parse_number("seed", optarg, 0, 0x1p53, &x)) return false;
        r->how.key = (uint64_t)x;
        return true;
    default: return wrong("unknown option, or one without its value", NULL);
    }
}

static bool parse(struct request *r, int argc, char **argv)
{
    static const struct option options[] = {
        {"prompt", required_argument, NULL, 'p'},    {"prompt-ids", required_argument, NULL, 'i'},
        {"tokens", required_argument, NULL, 'n'},    {"temperature", required_argument, NULL, 't'},
        {"top-p", required_argument, NULL, 'P'},     {"seed", required_argument, NULL, 's'},
        {"tokenizer", required_argument, NULL, 'T'}, {0}};
    *r = (struct request){.prompt = "", .how = {.top_p = 1, .key = 1, .max_tokens = 64}};
    opterr = 0;
    optind = 0; /* argv[0] is the command's name */
    for (int letter; (letter = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (!parse_option(r, letter)) return false;
    if (optind == argc) return wrong("no RUN", NULL);
    if (r->ids && *r->prompt) return wrong("--prompt and --prompt-ids exclude one another", NULL);
    r->run = argv[optind];
    r->overrides = argv + optind + 1;
    r->n_overrides = argc - optind - 1;
    return true;
}

/* The checkpoint's settings with those of the command line; ends the run if they are wrong. */
static void load_config(struct config *cfg, const struct request *r, const char *dir)
{
    char file[CKPT_PATH];
    struct err_list errs = {0};
    config_try_load(cfg, path_print(file, "%s/config.yaml", dir), r->n_overrides, r->overrides,
                    &errs);
    if (errs.n > 0) fputs(errs.text, stderr);
    CHECK_CODE(CODE_CONFIG, errs.n == 0, "%s: %d error%s in the settings", file, errs.n,
               text_s(errs.n));
    err_free(&errs);
}

static bool is_given(const struct request *r, const char *key)
{
    for (int i = 0; i < r->n_overrides; i++)
        if (!strncmp(r->overrides[i], key, strlen(key))) return true;
    return false;
}

/* The mesh of so many ranks, whatever the training's was; no MTP modules; a call's tokens. */
static void adapt_config(struct config *cfg, const struct request *r, int size, int n_prompt)
{
    const int E = cfg->model.n_routed_experts;
    if (!is_given(r, "topology.tp=")) cfg->topology.tp = 1;
    if (!is_given(r, "topology.ep="))
        for (int ep = cfg->topology.ep = 1; ep <= size; ep++)
            if (size % ep == 0 && E % ep == 0) cfg->topology.ep = ep;
    const int tp = cfg->topology.tp, ep = cfg->topology.ep;
    CHECK_CODE(
        CODE_CONFIG,
        size % tp == 0 && size % ep == 0 && E % ep == 0 &&
            cfg->model.num_attention_heads % tp == 0 && cfg->model.vocab_size % tp == 0,
        "%d rank%s, %d heads, %d experts and %d tokens do not divide by topology.tp %d, ep %d",
        size, text_s(size), cfg->model.num_attention_heads, E, cfg->model.vocab_size, tp, ep);
    int at_once = n_prompt < MAX_AT_ONCE ? n_prompt : MAX_AT_ONCE;
    if (at_once < 2) at_once = 2; /* of data.sequence_length */
    cfg->model.num_nextn_predict_layers = 0;
    cfg->train.micro_batch = 1;
    cfg->data.sequence_length = (at_once + tp - 1) / tp * tp;
}

static struct tokenizer *find_tokenizer(const struct request *r, const struct found *f)
{
    char path[CKPT_PATH];
    struct fault fault = {0};
    path_print(path, "%s/tokenizer.json", r->run);
    if (r->tokenizer)
        path_print(path, "%s", r->tokenizer);
    else if (access(path, F_OK) != 0)
        *path = '\0';
    struct tokenizer *tok = generate_try_tokenizer(path, f->manifest.state.tokenizer_fingerprint,
                                                   f->cfg.model.vocab_size, &fault);
    CHECK_CODE(fault.code, tok, "%s (--tokenizer)", fault.why);
    return tok;
}

static void add_id(struct id_list *ids, uint32_t id)
{
    *id_list_reserve(ids, 1) = id;
    ids->n++;
}

static void read_ids(struct id_list *ids, const char *text, int vocab)
{
    for (const char *at = text;; at++) {
        char *end;
        const long id = strtol(at, &end, 10);
        CHECK_CODE(CODE_USAGE, end != at && (!*end || *end == ',') && id >= 0 && id < vocab,
                   "--prompt-ids: expected ids from 0 to %d with commas between them, found %s",
                   vocab - 1, at);
        add_id(ids, (uint32_t)id);
        if (!*end) return;
        at = end;
    }
}

static void make_prompt(struct found *f, const struct request *r)
{
    struct id_list ids = {0};
    if (r->ids) {
        read_ids(&ids, r->ids, f->cfg.model.vocab_size);
    } else {
        f->tok = find_tokenizer(r, f);
        generate_encode(f->tok, r->prompt, &ids);
    }
    CHECK_CODE(CODE_USAGE, ids.n > 0, "an empty prompt, and no token that ends documents");
    CHECK_CODE(CODE_USAGE, ids.n <= 1 << 24, "a prompt of %lld tokens", (long long)ids.n);
    f->n_prompt = (int)ids.n;
    f->prompt = mem_alloc((size_t)ids.n * sizeof *f->prompt, "prompt");
    for (int64_t i = 0; i < ids.n; i++) {
        CHECK_CODE(CODE_CONFIG, ids.id[i] < (uint32_t)f->cfg.model.vocab_size,
                   "the tokenizer's id %u is beyond the model's vocabulary of %d", ids.id[i],
                   f->cfg.model.vocab_size);
        f->prompt[i] = (int32_t)ids.id[i];
    }
    free(ids.id);
}

/* Everything that files say, by rank 0. */
static void look(struct found *f, const struct request *r, int size)
{
    struct fault fault = {0};
    store_resolve(f->dir, r->run);
    const int bad = manifest_try_read(&f->manifest, f->dir, &fault);
    CHECK_CODE(fault.code, !bad, "%s", fault.why);
    load_config(&f->cfg, r, f->dir);
    make_prompt(f, r);
    adapt_config(&f->cfg, r, size, f->n_prompt);
}

/* What rank 0 has found, on the others. */
static void share(struct found *f, struct sampling *how, int rank)
{
    char *text[3] = {NULL, NULL, NULL};
    if (rank == 0) {
        text[0] = manifest_to_text(&f->manifest);
        text[1] = config_to_text(&f->cfg);
    }
    char *manifest = mesh_broadcast_text(rank == 0 ? text[0] : "");
    char *config = mesh_broadcast_text(rank == 0 ? text[1] : "");
    char *dir = mesh_broadcast_text(f->dir);
    if (rank != 0) {
        struct fault fault = {0};
        path_print(f->dir, "%s", dir);
        const int bad = manifest_try_parse(&f->manifest, manifest, f->dir, &fault);
        CHECK(!bad, "%s", fault.why);
        config_from_text(&f->cfg, config);
    }
    mesh_broadcast(&f->n_prompt, sizeof f->n_prompt, "broadcast of a length");
    if (rank != 0) f->prompt = mem_alloc((size_t)f->n_prompt * sizeof *f->prompt, "prompt");
    mesh_broadcast(f->prompt, (size_t)f->n_prompt * sizeof *f->prompt, "broadcast of a prompt");
    mesh_broadcast(how, sizeof *how, "broadcast of settings");
    char *owned[] = {text[0], text[1], manifest, config, dir};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

static void print_token(void *to, int32_t id)
{
    const struct found *f = to;
    int64_t n = 0;
    if (f->tok) {
        const char *text = tokenizer_text(f->tok, (uint32_t)id, &n);
        if (text) fwrite(text, 1, (size_t)n, stdout);
    } else {
        printf("%d\n", id);
    }
    fflush(stdout);
}

static void generate(struct run *run, struct found *f, const struct sampling *how)
{
    const bool speaks = run->mesh.rank == 0;
    struct sampler *sampler = sampler_init(&run->model);
    for (int i = 0; speaks && f->tok && i < f->n_prompt; i++) print_token(f, f->prompt[i]);
    const double start = clock_s();
    const int n = sampler_run(sampler, f->prompt, f->n_prompt, how, print_token, f);
    if (speaks && f->tok) printf("\n");
    if (speaks)
        fprintf(stderr, "%s: step %lld, %d token%s in %.2f s\n", f->dir,
                (long long)f->manifest.state.step, n, text_s(n), clock_s() - start);
    sampler_free(sampler);
}

static void run_model(struct found *f, const struct sampling *how)
{
    struct run run = {.cfg = &f->cfg};
    wait_set_deadline(f->cfg.run.deadline_s);
    mesh_init(&run.mesh, &f->cfg);
    run.be = backend_find("cpu");
    run.threads = mesh_threads(&run.mesh, &f->cfg);
    run.stream = run.be->stream_create(run.threads);
    place_at("weights");
    generate_place(&run, f->n_prompt + how->max_tokens);
    generate_load(&run, &f->manifest, f->dir);
    place_at("generation");
    generate(&run, f, how);
    run_unplace(&run);
    run.be->stream_destroy(run.stream);
    mesh_free(&run.mesh);
}

static int start(struct request *r)
{
    int rank, size;
    struct found f = {0};
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (!launch_is_one_world(size)) return CODE_USAGE;
    place_at("checkpoint");
    if (rank == 0) {
        look(&f, r, size);
        r->how.n_ids = f.cfg.model.vocab_size;
        r->how.end = -1;
        if (f.tok && tokenizer_vocab_size(f.tok) < r->how.n_ids)
            r->how.n_ids = (int)tokenizer_vocab_size(f.tok);
        if (f.tok) r->how.end = generate_end(f.tok);
    }
    share(&f, &r->how, rank);
    run_model(&f, &r->how);
    mem_free(f.prompt);
    if (f.tok) tokenizer_free(f.tok);
    manifest_free(&f.manifest);
    config_free(&f.cfg);
    CHECK(mem_live() == 0, "%ld blocks of memory were not given back", mem_live());
    return rank == 0 ? output_end() : CODE_DONE;
}

static int run_generate(int argc, char **argv)
{
    struct request r;
    if (!parse(&r, argc + 1, argv - 1)) return CODE_USAGE;
    stop_begin();
    signals_answer(SIGNALS_DIE); /* nothing would be lost */
    launch_begin();
    const int code = start(&r);
    launch_end();
    return code;
}

const struct command cmd_generate = {.name = "generate", .help = help, .run = run_generate};
