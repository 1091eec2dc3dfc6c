/* write.c - text to shards; see tokenize.h. */
#include "tokenize.h"

#include "base/clock.h"
#include "base/path.h"
#include "base/text.h"
#include "ckpt/io.h"
#include "data/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES_EOD = 256, NONE = -1, NAME_BYTES = 4096, MAX_DOCUMENT_BYTES = 1 << 30 };

/* A shard, or several of at most shard_tokens tokens. */
struct output {
    const char *path;
    int64_t shard_tokens, n_tokens, n_documents;
    struct shard_writer **writer; /* the last one is being written */
    int n;
};

struct job {
    const struct options *o;
    struct corpus *corpus;
    struct tokenizer *tok;
    struct shard_kind kind;
    struct output train, heldout;
    const struct cut *cut; /* the next one; NULL: nothing is held out */
    bool in_cut;

    bool in_document;
    const char *path; /* of the document */
    char *document;   /* what is collected of it */
    int64_t n_document, cap_document;
    struct id_list ids;
};

/* No half-written files stay behind. */
static _Noreturn void give_up(struct job *job, enum exit_code code, const char *why)
{
    for (int i = 0; i < job->train.n; i++) shard_writer_discard(job->train.writer[i]);
    for (int i = 0; i < job->heldout.n; i++) shard_writer_discard(job->heldout.writer[i]);
    DIE(code, "%s", why);
}

/* For what was read as a whole. */
static _Noreturn void give_up_input(struct job *job, const char *why)
{
    char text[NAME_BYTES + 256];
    snprintf(text, sizeof text, "%.*s%s: %s", NAME_BYTES, job->o->path[0],
             job->o->n_paths > 1 ? " and the other files" : "", why);
    give_up(job, CODE_DATA, text);
}

/* The path of shard i. */
static void shard_path(char name[NAME_BYTES], const char *path, bool numbered, int i)
{
    const int stem = (int)(strlen(path) - strlen(SHARD_SUFFIX));
    const int n = numbered ? snprintf(name, NAME_BYTES, "%.*s-%05d" SHARD_SUFFIX, stem, path, i)
                           : snprintf(name, NAME_BYTES, "%s", path);
    CHECK_CODE(CODE_USAGE, n < NAME_BYTES, "%s: the name is too long", path);
}

static void make_directory_of(const char *path)
{
    char dir[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    struct fault fault = {0};

    if (!slash || slash == path) return;
    const int bad = io_try_make_dirs(path_print(dir, "%.*s", (int)(slash - path), path), &fault);
    CHECK_CODE(fault.code, !bad, "%s: %s", path, fault.why);
}

static struct shard_writer *output_writer(struct output *out, const struct shard_kind *kind)
{
    char name[NAME_BYTES];

    if (out->n > 0) {
        struct shard_writer *last = out->writer[out->n - 1];
        if (out->shard_tokens == 0 || shard_writer_tokens(last) < out->shard_tokens) return last;
        shard_writer_finish(last);
    }
    if (out->n == 0) make_directory_of(out->path);
    out->writer = realloc(out->writer, (size_t)(out->n + 1) * sizeof *out->writer);
    CHECK(out->writer, "no memory for %d shards", out->n + 1);
    shard_path(name, out->path, out->shard_tokens > 0, out->n);
    return out->writer[out->n++] = shard_writer_init(name, kind);
}

static void output_ids(struct output *out, const struct shard_kind *kind, const uint32_t *id,
                       int64_t n)
{
    while (n > 0) {
        struct shard_writer *w = output_writer(out, kind);
        const int64_t left = out->shard_tokens - shard_writer_tokens(w);
        const int64_t piece = out->shard_tokens > 0 && left < n ? left : n;
        shard_writer_add(w, id, piece);
        out->n_tokens += piece;
        id += piece;
        n -= piece;
    }
}

static void encode(struct job *job, struct output *to, const char *text, int64_t n)
{
    struct fault fault;
    char why[NAME_BYTES + sizeof fault.why];

    job->ids.n = 0;
    if (tokenizer_try_encode(job->tok, text, n, &job->ids, &fault) != 0) {
        snprintf(why, sizeof why, "%s: document %ld, %s", job->path,
                 (long)(job->train.n_documents + job->heldout.n_documents + 1), fault.why);
        give_up(job, fault.code, why);
    }
    output_ids(to, &job->kind, job->ids.id, job->ids.n);
}

/* A document is encoded as a whole, since what stands behind a place may decide how it is cut. */
static void collect(struct job *job, const char *bytes, int64_t n)
{
    char why[NAME_BYTES + 128];

    if (job->n_document + n > MAX_DOCUMENT_BYTES) {
        snprintf(why, sizeof why,
                 "%s: a document of more than 1 GiB; --separator or --json-key tells where "
                 "documents end",
                 job->path);
        give_up(job, CODE_DATA, why);
    }
    if (job->n_document + n > job->cap_document) {
        job->cap_document = 2 * (job->n_document + n);
        job->document = realloc(job->document, (size_t)job->cap_document);
        CHECK(job->document, "no memory for a document of %ld bytes", (long)job->cap_document);
    }
    memcpy(job->document + job->n_document, bytes, (size_t)n);
    job->n_document += n;
}

static void output_bytes(struct job *job, struct output *to, const char *bytes, int64_t n)
{
    const uint32_t bos = (uint32_t)job->kind.bos_id;

    if (n == 0) return;
    if (!job->in_document && job->kind.bos_id != NONE) output_ids(to, &job->kind, &bos, 1);
    job->in_document = true;
    job->path = input_path(corpus_input(job->corpus));
    if (tokenizer_is_local(job->tok))
        encode(job, to, bytes, n);
    else
        collect(job, bytes, n);
}

static void output_end_document(struct job *job, struct output *to)
{
    const uint32_t eod = (uint32_t)job->kind.eod_id;

    if (!job->in_document) return;
    if (!tokenizer_is_local(job->tok)) encode(job, to, job->document, job->n_document);
    job->n_document = 0;
    if (job->kind.eod_id != NONE) output_ids(to, &job->kind, &eod, 1);
    shard_writer_end_document(to->writer[to->n - 1]);
    to->n_documents++;
    job->in_document = false;
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
    printf("%s: %ld tokens, %ld document%s", name, (long)out->n_tokens, (long)out->n_documents,
           text_s(out->n_documents));
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

static enum corpus_event next(struct job *job, const char **bytes, int64_t *n)
{
    struct fault fault;
    const enum corpus_event event = corpus_next(job->corpus, bytes, n, &fault);
    if (event == CORPUS_FAULT) give_up(job, fault.code, fault.why);
    return event;
}

/* What is held out of the whole text, which is read for that. New memory. */
static struct cut *choose_cuts(struct job *job)
{
    struct outline text = {0};
    const char *bytes;
    int64_t n = 0;
    enum corpus_event event;

    while ((event = next(job, &bytes, &n)) != CORPUS_END)
        if (event == CORPUS_BYTES)
            outline_add_bytes(&text, input_file(corpus_input(job->corpus)), n);
        else
            outline_end_document(&text);
    corpus_rewind(job->corpus);
    struct cut *cut = outline_cut(&text, job->o->fraction);
    outline_free(&text);
    return cut;
}

static void show_progress(const struct input *in, double start_s, bool last)
{
    static double shown_s;
    const double now_s = clock_s(), done = (double)input_done_bytes(in);
    const double total = (double)input_file_bytes(in), rate = done / (now_s - start_s + 1e-9);

    if (!isatty(STDERR_FILENO) || (!last && now_s - shown_s < 0.2)) return;
    shown_s = now_s;
    if (total > 0)
        fprintf(stderr, "\r%5.1f %% of %.1f MB, %.1f MB/s, %.0f s left   ", 100 * done / total,
                total / 1e6, rate / 1e6, (total - done) / rate);
    else
        fprintf(stderr, "\r%.1f MB, %.1f MB/s   ", done / 1e6, rate / 1e6);
    if (last) fprintf(stderr, "\n");
}

/* Text at place of all text: to the training part, the held-out part, or first the one and then the
 * other. Returns which one had the last of it. */
static struct output *output_part(struct job *job, const char *bytes, int64_t n, int64_t place)
{
    int64_t first = n;

    if (job->cut) {
        for (; place >= job->cut->end; job->cut++) job->in_cut = false;
        first = job->in_cut ? 0 : cut_before(job->cut, bytes, n, place);
    }
    output_bytes(job, &job->train, bytes, first);
    if (first == n) return &job->train;
    if (!job->in_cut) output_end_document(job, &job->train);
    job->in_cut = true;
    output_bytes(job, &job->heldout, bytes + first, n - first);
    return &job->heldout;
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
            output_end_document(job, to);
            continue;
        }
        to = output_part(job, bytes, n, place);
        place += n;
        show_progress(corpus_input(job->corpus), start_s, false);
    }
    show_progress(corpus_input(job->corpus), start_s, true);
}

/* What was done about the text that nobody may have expected. */
static void report_notes(const struct job *job)
{
    const struct corpus_notes *notes = corpus_notes(job->corpus);

    if (notes->n_bad_lines > 0)
        warn_line("%ld bad line%s left out; the first: %s", (long)notes->n_bad_lines,
                  text_s(notes->n_bad_lines), notes->bad_line);
    if (notes->n_bad_bytes > 0)
        warn_line("%ld byte%s that %s not UTF-8 kept as they are; the first: %s",
                  (long)notes->n_bad_bytes, text_s(notes->n_bad_bytes),
                  notes->n_bad_bytes == 1 ? "is" : "are", notes->bad_byte);
    if (job->o->separator && notes->n_separators == 0)
        warn_line("no line of the text is the separator \"%s\": each file is one document",
                  job->o->separator);
}

/* All files are complete before the first gets its name. */
static void finish(struct job *job)
{
    if (job->train.n == 0)
        give_up_input(job, "0 tokens found: there is no text, and a shard has at least 1");
    if (job->o->heldout && job->heldout.n == 0)
        give_up_input(job,
                      "the text cannot be cut: no document and no line ends before its last part");
    shard_writer_finish(job->train.writer[job->train.n - 1]);
    if (job->o->heldout) shard_writer_finish(job->heldout.writer[job->heldout.n - 1]);
    output_commit(&job->train, job->o->force);
    if (job->o->heldout) output_commit(&job->heldout, job->o->force);
}

/* The id of the added token asked for, or NONE. */
static int32_t named_token(const struct job *job, const char *option, const char *text)
{
    if (!text || strcmp(text, "none") == 0) return NONE;
    const int64_t id = tokenizer_find(job->tok, text);
    CHECK_CODE(CODE_USAGE, id >= 0, "%s: %s %s is no added token%s", job->o->tokenizer, option,
               text, job->o->max_vocab ? " below --max-vocab" : "");
    return (int32_t)id;
}

static int32_t choose_eod(const struct job *job)
{
    const int64_t known = tokenizer_eod(job->tok);
    char has[512] = "";
    uint32_t id;

    if (!job->o->tokenizer) return BYTES_EOD;
    if (job->o->eod) return named_token(job, "--eod", job->o->eod);
    if (known >= 0) return (int32_t)known;
    for (int i = 0; i < 8 && tokenizer_special(job->tok, i, &id); i++)
        snprintf(has + strlen(has), sizeof has - strlen(has), " %.40s",
                 tokenizer_special(job->tok, i, &id));
    DIE(CODE_USAGE, "%s: which token ends a document? --eod TOKEN or --eod none; it has%s",
        job->o->tokenizer, *has ? has : " no special tokens");
}

/* Of the tokens around documents, nothing: they are not in the text. */
static uint32_t *measure_ids(const struct job *job)
{
    const int64_t n = tokenizer_vocab_size(job->tok);
    uint32_t *bytes = calloc((size_t)n, sizeof *bytes);
    CHECK(bytes, "no memory for %lld tokens", (long long)n);
    for (int64_t id = 0; id < n; id++) {
        int64_t length = 0;
        tokenizer_text(job->tok, (uint32_t)id, &length);
        if (id != job->kind.bos_id && id != job->kind.eod_id) bytes[id] = (uint32_t)length;
    }
    return bytes;
}

static void choose_kind(struct job *job)
{
    const int64_t n_ids = tokenizer_vocab_size(job->tok), vocab = job->o->vocab;
    const char *file = job->o->tokenizer, *slash = file ? strrchr(file, '/') : NULL;
    static char name[SHARD_TOKENIZER_BYTES];

    CHECK_CODE(CODE_USAGE, !vocab || vocab >= n_ids, "--vocab %ld, the tokenizer has %ld ids",
               (long)vocab, (long)n_ids);
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : file ? file : "bytes");
    job->kind = (struct shard_kind){.vocab_size = (uint64_t)(vocab ? vocab : n_ids),
                                    .tokenizer = name,
                                    .tokenizer_hash = tokenizer_hash(job->tok),
                                    .bos_id = named_token(job, "--bos", job->o->bos),
                                    .eod_id = choose_eod(job),
                                    .pad_id = NONE,
                                    .level = job->o->level};
}

int write_shards(const struct options *o)
{
    struct job job = {.o = o,
                      .train = {.path = o->out, .shard_tokens = o->shard_tokens},
                      .heldout = {.path = o->heldout}};
    const struct corpus_form form = {.separator = o->separator,
                                     .json_key = o->json_key,
                                     .repeatable = o->heldout != NULL,
                                     .any_bytes = o->any_bytes,
                                     .skip_bad_lines = o->skip_bad_lines};
    struct fault fault;
    struct cut *cuts = NULL;

    refuse_to_replace(o->out, o->shard_tokens > 0, o->force);
    if (o->heldout) refuse_to_replace(o->heldout, false, o->force);
    job.tok = options_tokenizer(o);
    choose_kind(&job);
    uint32_t *const id_text_bytes = measure_ids(&job);
    job.kind.id_text_bytes = id_text_bytes;
    job.corpus = corpus_try_open(o->path, o->n_paths, &form, &fault);
    CHECK_CODE(fault.code, job.corpus, "%s", fault.why);
    if (o->heldout) job.cut = cuts = choose_cuts(&job);
    write_ids(&job);
    report_notes(&job);
    finish(&job);
    free(id_text_bytes);
    free(cuts);
    free(job.document);
    free(job.ids.id);
    corpus_close(job.corpus);
    tokenizer_free(job.tok);
    return CODE_DONE;
}
