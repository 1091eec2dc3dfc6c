/*
 * tokenize.c - dsv3-tokenize: text to token shards, and checking shards. The ids are bytes, 0 ..
 * 255, with 256 after each document. It runs before training; dsv3 reads what it writes.
 */
#include "base/clock.h"
#include "data/corpus.h"
#include "data/shard.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { END_OF_DOCUMENT = 256, MIN_VOCAB = 257, PIECE = 65536, NAME_BYTES = 4096 };
#define BYTES_DEFINITION "bytes: id is the byte's value, 256 ends a document"

static const char usage[] =
    "usage: dsv3-tokenize --out NAME.tok.zst [options] [PATH...]\n"
    "       dsv3-tokenize --verify SHARD...\n"
    "\n"
    "Makes a shard of byte tokens (0 .. 255, and 256 after each document) from text files,\n"
    "directories (all files below, in bytewise order of their paths) or standard input (-).\n"
    "Each file is a document.\n"
    "\n"
    "  --separator LINE       a line that equals LINE ends a document, and is left out\n"
    "  --heldout FILE         the last part of the text goes to this shard\n"
    "  --heldout-fraction X   how much of it: 0.05; cut between two documents, or, where that\n"
    "                         would make it half or one and a half times as long, after a line\n"
    "  --vocab N              vocabulary to declare: 512\n"
    "  --shard-tokens N       shards of N tokens, NAME-00000.tok.zst, NAME-00001.tok.zst, ...\n"
    "  --level N              of zstd, 1 .. 22: 3\n"
    "  --force                replace shards of that name\n"
    "  --verify               read and check everything in the shards given, print counts\n";

struct options {
    const char *out, *heldout, *separator;
    double fraction;
    int64_t vocab, shard_tokens; /* shard_tokens 0: one shard */
    int level;
    bool force, verify, help;
    char **path;
    int n_paths;
};

/* A shard, or several of at most shard_tokens tokens. */
struct output {
    const char *path;
    const struct shard_kind *kind;
    int64_t shard_tokens, n_tokens, n_documents;
    struct shard_writer **writer; /* the last one is being written */
    int n;
    bool in_document;
};

static int usage_error(const char *fmt, const char *what)
{
    fprintf(stderr, "dsv3-tokenize: ");
    fprintf(stderr, fmt, what);
    fprintf(stderr, "; dsv3-tokenize --help lists the options\n");
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

static int parse_option(struct options *o, int letter)
{
    int64_t level;
    switch (letter) {
    case 'o': o->out = optarg; return 0;
    case 'h': o->heldout = optarg; return 0;
    case 's': o->separator = optarg; return 0;
    case 'x': return parse_fraction(optarg, &o->fraction);
    case 'n': return parse_count(optarg, MIN_VOCAB, INT64_C(1) << 32, &o->vocab);
    case 't': return parse_count(optarg, 1, INT64_MAX, &o->shard_tokens);
    case 'l':
        if (parse_count(optarg, 1, 22, &level) != 0) return -1;
        o->level = (int)level;
        return 0;
    case 'f': o->force = true; return 0;
    case 'v': o->verify = true; return 0;
    case 'H': o->help = true; return 0;
    default: return usage_error("%s", "that is no option"); /* getopt has named it */
    }
}

static int check_options(const struct options *o)
{
    if (o->verify)
        return o->n_paths > 0 && !o->out ? 0 : usage_error("%s", "--verify needs shards, no --out");
    if (!o->out) return usage_error("%s", "--out is missing");
    if (!is_shard_path(o->out)) return usage_error("--out %s does not end in .tok.zst", o->out);
    if (o->heldout && !is_shard_path(o->heldout))
        return usage_error("--heldout %s does not end in .tok.zst", o->heldout);
    if (o->heldout && strcmp(o->heldout, o->out) == 0)
        return usage_error("--heldout and --out are both %s", o->out);
    if (o->separator && strchr(o->separator, '\n'))
        return usage_error("%s", "--separator is one line");
    return 0;
}

static int parse(struct options *o, int argc, char **argv)
{
    static char standard_input[] = "-", *only_standard_input[] = {standard_input};
    static const struct option table[] = {{"out", required_argument, NULL, 'o'},
                                          {"heldout", required_argument, NULL, 'h'},
                                          {"separator", required_argument, NULL, 's'},
                                          {"heldout-fraction", required_argument, NULL, 'x'},
                                          {"vocab", required_argument, NULL, 'n'},
                                          {"shard-tokens", required_argument, NULL, 't'},
                                          {"level", required_argument, NULL, 'l'},
                                          {"force", no_argument, NULL, 'f'},
                                          {"verify", no_argument, NULL, 'v'},
                                          {"help", no_argument, NULL, 'H'},
                                          {NULL, 0, NULL, 0}};
    int letter;

    *o = (struct options){.fraction = 0.05, .vocab = 512, .level = 3};
    while ((letter = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (parse_option(o, letter) != 0) return -1;
    if (o->help) return 0;
    o->path = argv + optind;
    o->n_paths = argc - optind;
    if (o->n_paths == 0 && !o->verify) {
        if (isatty(STDIN_FILENO)) return usage_error("%s", "no text given");
        o->path = only_standard_input;
        o->n_paths = 1;
    }
    return check_options(o);
}

/* The path of shard i. */
static void shard_path(char name[NAME_BYTES], const char *path, bool numbered, int i)
{
    const int stem = (int)(strlen(path) - strlen(SHARD_SUFFIX));
    const int n = numbered ? snprintf(name, NAME_BYTES, "%.*s-%05d" SHARD_SUFFIX, stem, path, i)
                           : snprintf(name, NAME_BYTES, "%s", path);
    CHECK_CODE(CODE_USAGE, n < NAME_BYTES, "%s: the name is too long", path);
}

static struct shard_writer *output_writer(struct output *out)
{
    char name[NAME_BYTES];

    if (out->n > 0) {
        struct shard_writer *last = out->writer[out->n - 1];
        if (out->shard_tokens == 0 || shard_writer_tokens(last) < out->shard_tokens) return last;
        shard_writer_finish(last);
    }
    out->writer = realloc(out->writer, (size_t)(out->n + 1) * sizeof *out->writer);
    CHECK(out->writer, "no memory for %d shards", out->n + 1);
    shard_path(name, out->path, out->shard_tokens > 0, out->n);
    return out->writer[out->n++] = shard_writer_init(name, out->kind);
}

static void output_ids(struct output *out, const uint32_t *id, int64_t n)
{
    while (n > 0) {
        struct shard_writer *w = output_writer(out);
        const int64_t left = out->shard_tokens - shard_writer_tokens(w);
        const int64_t piece = out->shard_tokens > 0 && left < n ? left : n;
        shard_writer_add(w, id, piece);
        out->n_tokens += piece;
        id += piece;
        n -= piece;
    }
}

static void output_bytes(struct output *out, const char *bytes, int64_t n)
{
    static uint32_t id[PIECE];

    if (n > 0) out->in_document = true;
    while (n > 0) {
        const int64_t piece = n < PIECE ? n : PIECE;
        for (int64_t i = 0; i < piece; i++) id[i] = (unsigned char)bytes[i];
        output_ids(out, id, piece);
        bytes += piece;
        n -= piece;
    }
}

static void output_end_document(struct output *out)
{
    const uint32_t end = END_OF_DOCUMENT;

    if (!out->in_document) return;
    output_ids(out, &end, 1);
    shard_writer_end_document(out->writer[out->n - 1]);
    out->n_documents++;
    out->in_document = false;
}

/* A shard left over from a longer text would be read with the new ones. */
static void remove_others(const struct output *out)
{
    char name[NAME_BYTES];
    const bool numbered = out->shard_tokens > 0;

    if (numbered) unlink(out->path);
    for (int i = numbered ? out->n : 0; shard_path(name, out->path, true, i), !unlink(name); i++) {
    }
}

static void output_commit(struct output *out, bool force)
{
    char name[NAME_BYTES];

    for (int i = 0; i < out->n; i++) shard_writer_commit(out->writer[i]);
    if (force) remove_others(out);
    shard_path(name, out->path, out->shard_tokens > 0, 0);
    printf("%s: %ld tokens, %ld documents", name, (long)out->n_tokens, (long)out->n_documents);
    if (out->n > 1) printf(", in %d shards", out->n);
    printf("\n");
    free(out->writer);
}

static void refuse_to_replace(const char *path, bool numbered, bool force)
{
    char name[NAME_BYTES];
    shard_path(name, path, numbered, 0);
    CHECK_CODE(CODE_IO, force || access(name, F_OK) != 0, "%s exists; --force replaces it", name);
}

/* Where the held-out part begins, in bytes of text. */
struct cut {
    int64_t at;
    bool after_line; /* at the first line end at or after that place; otherwise exactly there */
};

struct job {
    struct corpus *corpus;
    struct output train, heldout;
    bool has_heldout;
    struct cut cut;
};

/* No half-written files stay behind. */
static _Noreturn void give_up(struct job *job, enum exit_code code, const char *why)
{
    for (int i = 0; i < job->train.n; i++) shard_writer_discard(job->train.writer[i]);
    for (int i = 0; i < job->heldout.n; i++) shard_writer_discard(job->heldout.writer[i]);
    DIE(code, "%s", why);
}

static enum corpus_event next(struct job *job, const char **bytes, int64_t *n)
{
    struct shard_fault fault;
    const enum corpus_event event = corpus_next(job->corpus, bytes, n, &fault);
    if (event == CORPUS_FAULT) give_up(job, fault.code, fault.why);
    return event;
}

/* Document ends of the whole text; returns the bytes of text. New memory in *end. */
static int64_t find_documents(struct job *job, int64_t **end, int64_t *n_ends)
{
    int64_t total = 0, cap = 0, n = 0;
    const char *bytes;
    enum corpus_event event;

    *end = NULL;
    *n_ends = 0;
    while ((event = next(job, &bytes, &n)) != CORPUS_END) {
        if (event == CORPUS_BYTES) {
            total += n;
            continue;
        }
        if (*n_ends == cap) {
            cap = cap ? 2 * cap : 1024;
            *end = realloc(*end, (size_t)cap * sizeof **end);
            CHECK(*end, "no memory for %ld document ends", (long)cap);
        }
        (*end)[(*n_ends)++] = total;
    }
    corpus_rewind(job->corpus);
    return total;
}

/* The document end nearest to the fraction, unless it makes the part half as long again or shorter.
 */
static struct cut choose_cut(struct job *job, double fraction)
{
    int64_t *end, n_ends;
    const int64_t total = find_documents(job, &end, &n_ends);
    const int64_t part = (int64_t)(fraction * (double)total), target = total - part;
    int64_t best = -1;

    for (int64_t i = 0; i < n_ends; i++)
        if (end[i] > 0 && end[i] < total &&
            (best < 0 || llabs(end[i] - target) < llabs(best - target)))
            best = end[i];
    free(end);
    if (best >= 0 && llabs(best - target) <= part / 2) return (struct cut){best, false};
    return (struct cut){target, true};
}

/* How many of the n bytes at place belong before the cut; less than n where the cut is. */
static int64_t before_cut(const struct cut *cut, const char *bytes, int64_t n, int64_t place)
{
    if (place + n < cut->at) return n;
    if (!cut->after_line) return cut->at - place;
    const int64_t from = cut->at - 1 > place ? cut->at - 1 - place : 0;
    const char *newline = memchr(bytes + from, '\n', (size_t)(n - from));
    return newline ? newline + 1 - bytes : n;
}

static void show_progress(const struct corpus *corpus, double start_s, bool last)
{
    static double shown_s;
    const double now_s = clock_s(), done = (double)corpus_done_bytes(corpus);
    const double total = (double)corpus_file_bytes(corpus), rate = done / (now_s - start_s + 1e-9);

    if (!isatty(STDERR_FILENO) || (!last && now_s - shown_s < 0.2)) return;
    shown_s = now_s;
    if (total > 0)
        fprintf(stderr, "\r%5.1f %% of %.1f MB, %.1f MB/s, %.0f s left   ", 100 * done / total,
                total / 1e6, rate / 1e6, (total - done) / rate);
    else
        fprintf(stderr, "\r%.1f MB, %.1f MB/s   ", done / 1e6, rate / 1e6);
    if (last) fprintf(stderr, "\n");
}

static void write_ids(struct job *job)
{
    const double start_s = clock_s();
    struct output *to = &job->train;
    const char *bytes;
    int64_t n = 0, place = 0;
    enum corpus_event event;

    while ((event = next(job, &bytes, &n)) != CORPUS_END) {
        if (event == CORPUS_DOCUMENT_END) {
            output_end_document(to);
            continue;
        }
        int64_t first = n;
        if (job->has_heldout && to == &job->train) first = before_cut(&job->cut, bytes, n, place);
        output_bytes(to, bytes, first);
        if (first < n) {
            output_end_document(to);
            to = &job->heldout;
            output_bytes(to, bytes + first, n - first);
        }
        place += n;
        show_progress(job->corpus, start_s, false);
    }
    show_progress(job->corpus, start_s, true);
}

/* All files are complete before the first gets its name. */
static void finish(struct job *job, bool force)
{
    if (job->train.n == 0) give_up(job, CODE_DATA, "there is no text");
    if (job->has_heldout && job->heldout.n == 0)
        give_up(job, CODE_DATA,
                "the text cannot be cut: no document and no line ends before its last part");
    shard_writer_finish(job->train.writer[job->train.n - 1]);
    if (job->has_heldout) shard_writer_finish(job->heldout.writer[job->heldout.n - 1]);
    output_commit(&job->train, force);
    if (job->has_heldout) output_commit(&job->heldout, force);
}

static int tokenize(const struct options *o)
{
    const struct shard_kind kind = {.vocab_size = (uint64_t)o->vocab,
                                    .tokenizer = "bytes",
                                    .tokenizer_hash =
                                        XXH64(BYTES_DEFINITION, strlen(BYTES_DEFINITION), 0),
                                    .bos_id = -1,
                                    .eod_id = END_OF_DOCUMENT,
                                    .pad_id = -1,
                                    .level = o->level};
    struct job job = {.train = {.path = o->out, .kind = &kind, .shard_tokens = o->shard_tokens},
                      .heldout = {.path = o->heldout, .kind = &kind},
                      .has_heldout = o->heldout != NULL};
    struct shard_fault fault;

    refuse_to_replace(o->out, o->shard_tokens > 0, o->force);
    if (o->heldout) refuse_to_replace(o->heldout, false, o->force);
    job.corpus = corpus_try_open(o->path, o->n_paths, o->separator, job.has_heldout, &fault);
    CHECK_CODE(fault.code, job.corpus, "%s", fault.why);
    if (o->heldout) job.cut = choose_cut(&job, o->fraction);
    write_ids(&job);
    finish(&job, o->force);
    corpus_close(job.corpus);
    return CODE_DONE;
}

/* Every frame, its ids, and the hash of all. */
static int try_verify_frames(const struct shard *shard, struct shard_fault *fault)
{
    const struct shard_header *h = &shard->header;
    void *ids = malloc((size_t)SHARD_FRAME_TOKENS * h->id_bytes);
    XXH64_state_t *hash = XXH64_createState();
    struct shard_decoder dec;
    uint32_t max = 0;
    int bad = 0;

    CHECK(ids && hash, "no memory for a frame");
    XXH64_reset(hash, 0);
    shard_decoder_init(&dec);
    for (int64_t frame = 0; frame < h->n_frames && !bad; frame++) {
        const int64_t n = shard_frame_tokens(shard, frame);
        bad = shard_try_frame(shard, frame, &dec, ids, fault) != 0;
        for (int64_t i = 0; i < n && !bad; i++)
            if (shard_id(ids, h->id_bytes, i) > max) max = shard_id(ids, h->id_bytes, i);
        if (!bad) XXH64_update(hash, ids, (size_t)n * h->id_bytes);
    }
    const uint64_t found = XXH64_digest(hash);
    shard_decoder_free(&dec);
    XXH64_freeState(hash);
    free(ids);
    if (bad) return -1;
    if (found == h->content_hash && max == h->max_id) return 0;
    return shard_fault_set(fault, CODE_DATA,
                           "%s: hash of all ids is 0x%016lx, expected 0x%016lx; largest id %u, "
                           "expected %u",
                           shard->path, (unsigned long)found, (unsigned long)h->content_hash, max,
                           h->max_id);
}

static int verify(const struct options *o)
{
    uint64_t fingerprint = 0, n_tokens = 0, n_documents = 0;
    int code = CODE_DONE;

    for (int i = 0; i < o->n_paths; i++) {
        struct shard_fault fault;
        struct shard shard = {0};
        const struct shard_header *h = &shard.header;
        if (shard_try_open(&shard, o->path[i], &fault) != 0 ||
            shard_try_check_index(&shard, &fault) != 0 || try_verify_frames(&shard, &fault) != 0) {
            fprintf(stderr, "%s\n", fault.why);
            if (code == CODE_DONE) code = fault.code;
            shard_close(&shard);
            continue;
        }
        printf("%s: %lu tokens, %lu documents, u%u, vocabulary %lu, largest id %u, tokenizer %s "
               "(0x%016lx), %.2f bits a token\n",
               shard.path, (unsigned long)h->n_tokens, (unsigned long)h->n_documents,
               8 * h->id_bytes, (unsigned long)h->vocab_size, h->max_id, h->tokenizer,
               (unsigned long)h->tokenizer_hash, 8.0 * (double)h->file_bytes / (double)h->n_tokens);
        fingerprint = shard_fingerprint(h, fingerprint);
        n_tokens += h->n_tokens;
        n_documents += h->n_documents;
        shard_close(&shard);
    }
    if (code == CODE_DONE)
        printf("%d shard%s: %lu tokens, %lu documents, fingerprint 0x%016lx\n", o->n_paths,
               o->n_paths > 1 ? "s" : "", (unsigned long)n_tokens, (unsigned long)n_documents,
               (unsigned long)fingerprint);
    return code;
}

int main(int argc, char **argv)
{
    struct options o;
    if (parse(&o, argc, argv) != 0) return CODE_USAGE;
    if (o.help) return fputs(usage, stdout) < 0;
    return o.verify ? verify(&o) : tokenize(&o);
}
