/*
 * manifest.c - the manifest as text and back; see manifest.h. One line a tensor, so that people can
 * read it. The checksum stands at a fixed place and is that of the text with zeros in its place.
 */
#include "ckpt/manifest.h"

#include "base/path.h"
#include "ckpt/cover.h"
#include "ckpt/io.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { HASH_AT = 10, HASH_DIGITS = 16, MAX_FILES = 1 << 20, MAX_TENSORS = 1 << 26 };
#define FORMAT "dsv3 checkpoint 3"
#define FORMAT_2 "dsv3 checkpoint 2" /* without sources and mixed_from */
#define MAX_MANIFEST ((int64_t)1 << 34)
#define MAX_ELEMENTS ((int64_t)1 << 56) /* of a tensor, so that no byte count leaves 64 bits */

static void put_text(FILE *out, const char *key, const char *text)
{
    json_t *string = json_string(text);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    CHECK(quoted, "no memory, or not UTF-8, for %s of a checkpoint", key);
    fprintf(out, " \"%s\": %s,\n", key, quoted);
    free(quoted);
    json_decref(string);
}

static void put_loss(FILE *out, const char *key, double loss)
{
    if (isfinite(loss))
        fprintf(out, " \"%s\": %.17g,\n", key, loss);
    else
        fprintf(out, " \"%s\": null,\n", key);
}

static void put_rollbacks(FILE *out, const struct ckpt_state *s)
{
    const struct ranges *set = &s->rollbacks.samples;
    fprintf(out, " \"skipped_samples\": %" PRId64 ", \"rollbacks\": %d, \"rollback_samples\": [",
            s->passed, s->rollbacks.n);
    for (int i = 0; i < set->n; i++)
        fprintf(out, "%s[%" PRId64 ", %" PRId64 "]", i ? ", " : "", set->at[i].first,
                set->at[i].end);
    fprintf(out, "],\n");
}

static void put_recent(FILE *out, const struct ckpt_recent *recent)
{
    if (recent->n == 0) return;
    fprintf(out, " \"recent\": [");
    for (int i = 0; i < recent->n; i++)
        fprintf(out, "%s[%.17g, %.17g]", i ? ", " : "", recent->loss[i], recent->grad_norm[i]);
    fprintf(out, "],\n");
}

static void put_state(FILE *out, const struct ckpt_state *s)
{
    fprintf(out, " \"step\": %" PRId64 ", \"tokens\": %" PRId64 ", \"samples\": %" PRId64 ",\n",
            s->step, s->tokens, s->samples);
    fprintf(out, " \"skipped\": %" PRId64 ", \"skipped_in_row\": %d,\n", s->skipped,
            s->skipped_in_row);
    put_rollbacks(out, s);
    put_recent(out, &s->recent);
    put_loss(out, "loss", s->loss);
    put_loss(out, "heldout_loss", s->heldout_loss);
    if (s->best.tokens > 0)
        fprintf(out,
                " \"best\": {\"step\": %" PRId64 ", \"tokens\": %" PRId64 ", \"loss\": %.17g},\n",
                s->best.step, s->best.tokens, s->best.loss);
    fprintf(out, " \"param_hash\": \"%016" PRIx64 "\",\n", s->param_hash);
    fprintf(out,
            " \"fingerprints\": {\"train\": \"%016" PRIx64 "\", \"heldout\": \"%016" PRIx64
            "\", \"tokenizer\": \"%016" PRIx64 "\"},\n",
            s->train_fingerprint, s->heldout_fingerprint, s->tokenizer_fingerprint);
    fprintf(out, " \"ids\": {\"bos\": %d, \"eod\": %d, \"pad\": %d},\n", s->bos_id, s->eod_id,
            s->pad_id);
    fprintf(out, " \"mesh\": {\"ranks\": %d, \"dp\": %d, \"tp\": %d, \"ep\": %d},\n", s->ranks,
            s->dp, s->tp, s->ep);
    fprintf(out, " \"mixed_from\": %" PRId64 ", \"sources\": [", s->mixed_from);
    for (int i = 0; i < s->n_sources; i++)
        fprintf(out, "%s{\"samples\": %" PRId64 ", \"taken\": %" PRId64 "}", i ? ", " : "",
                s->source[i].samples, s->source[i].taken);
    fprintf(out, "],\n");
}

static void put_files(FILE *out, const struct manifest *m)
{
    fprintf(out, " \"files\": [");
    for (int i = 0; i < m->n_files; i++)
        fprintf(out,
                "%s\n  {\"name\": \"%s\", \"bytes\": %" PRId64 ", \"xxh3\": \"%016" PRIx64 "\"}",
                i ? "," : "", m->file[i].name, m->file[i].bytes, m->file[i].hash);
    fprintf(out, "],\n");
}

static void put_tensor(FILE *out, const struct manifest *m, const struct ckpt_tensor *t)
{
    fprintf(out, "\n  {\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": [%" PRId64, t->name,
            dtype_name(t->dtype), t->dim[0]);
    if (t->n_dims == 2) fprintf(out, ", %" PRId64, t->dim[1]);
    fprintf(out, "], \"file\": %d, \"offset\": %" PRId64 ", \"boxes\": [", t->file, t->offset);
    for (int i = 0; i < t->n_boxes; i++) {
        const struct ckpt_box *b = &m->box[t->first_box + i];
        fprintf(out,
                "%s[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", \"%016" PRIx64
                "\"]",
                i ? ", " : "", b->base, b->first, b->run, b->stride, b->count, b->hash);
    }
    fprintf(out, "]}");
}

char *manifest_to_text(const struct manifest *m)
{
    char *text = NULL, digits[HASH_DIGITS + 1];
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    CHECK(out, "no memory for a manifest");
    fprintf(out, "{\"xxh3\": \"%0*d\",\n", HASH_DIGITS, 0);
    put_text(out, "format", FORMAT);
    put_text(out, "version", m->version);
    put_state(out, &m->state);
    put_text(out, "config", m->config);
    put_files(out, m);
    fprintf(out, " \"tensors\": [");
    for (int i = 0; i < m->n_tensors; i++) {
        if (i) fputc(',', out);
        put_tensor(out, m, &m->tensor[i]);
    }
    fprintf(out, "]}\n");
    CHECK(!fclose(out) && text, "no memory for a manifest");
    snprintf(digits, sizeof digits, "%016" PRIx64, (uint64_t)XXH3_64bits(text, n));
    memcpy(text + HASH_AT, digits, HASH_DIGITS);
    return text;
}

/* What is being read, for messages. */
struct parse {
    const char *where;
    struct fault *fault;
};

static int wrong(struct parse *p, const char *what)
{
    return fault_set(p->fault, CODE_DATA, "%s: %s", p->where, what);
}

static int get_integer(struct parse *p, const json_t *o, const char *key, int64_t lo, int64_t hi,
                       int64_t *x)
{
    const json_t *v = json_object_get(o, key);
    const int64_t got = json_integer_value(v);
    if (!json_is_integer(v) || got < lo || got > hi)
        return fault_set(p->fault, CODE_DATA,
                         "%s: %s is %s, expected an integer from %" PRId64 " to %" PRId64, p->where,
                         key,
                         json_is_integer(v) ? "out of range"
                         : v                ? "no integer"
                                            : "missing",
                         lo, hi);
    *x = got;
    return 0;
}

static int get_int(struct parse *p, const json_t *o, const char *key, int *x)
{
    int64_t wide = 0;
    const int bad = get_integer(p, o, key, 0, 1 << 30, &wide);
    *x = (int)wide;
    return bad;
}

static int get_hash(struct parse *p, const json_t *v, const char *key, uint64_t *x)
{
    const char *text = json_string_value(v);
    if (!text || strlen(text) != HASH_DIGITS || strspn(text, "0123456789abcdef") != HASH_DIGITS)
        return fault_set(p->fault, CODE_DATA, "%s: %s is no checksum of 16 hexadecimal digits",
                         p->where, key);
    *x = strtoull(text, NULL, 16);
    return 0;
}

/* A name goes into messages, and back into a manifest, as it is. */
static bool get_name(const json_t *o, char *name, size_t size)
{
    const char *text = json_string_value(json_object_get(o, "name"));
    if (!text || !*text || strlen(text) >= size) return false;
    for (const char *c = text; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') return false;
    strcpy(name, text);
    return true;
}

/* All zero in format 2, where every mixture has begun with its run. */
static int get_sources(struct parse *p, const json_t *o, struct ckpt_state *s)
{
    const json_t *sources = json_object_get(o, "sources");
    const size_t n = json_array_size(sources);
    if (n > CKPT_SOURCES)
        return fault_set(p->fault, CODE_DATA, "%s: %zu sources, expected at most %d", p->where, n,
                         CKPT_SOURCES);
    for (; s->n_sources < (int)n; s->n_sources++) {
        const json_t *v = json_array_get(sources, (size_t)s->n_sources);
        struct ckpt_source *source = &s->source[s->n_sources];
        if (get_integer(p, v, "samples", 1, INT64_MAX / 2, &source->samples) ||
            get_integer(p, v, "taken", 0, s->samples, &source->taken))
            return -1;
    }
    return get_integer(p, o, "mixed_from", 0, s->samples, &s->mixed_from);
}

/* -1 in checkpoints of programs that did not note them. */
static int get_id(struct parse *p, const json_t *ids, const char *key, int *x)
{
    int64_t wide = -1;
    const int bad = ids && get_integer(p, ids, key, -1, UINT32_MAX / 2, &wide);
    *x = (int)wide;
    return bad;
}

static double get_loss(const json_t *o, const char *key)
{
    const json_t *loss = json_object_get(o, key);
    return json_is_number(loss) ? json_number_value(loss) : NAN;
}

static int get_rollbacks(struct parse *p, const json_t *o, struct ckpt_state *s)
{
    const json_t *samples = json_object_get(o, "rollback_samples");
    if (!samples) return 0; /* written before there were any */
    if (get_integer(p, o, "skipped_samples", 0, s->samples, &s->passed) ||
        get_int(p, o, "rollbacks", &s->rollbacks.n))
        return -1;
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *pair = json_array_get(samples, i);
        const int64_t first = json_integer_value(json_array_get(pair, 0));
        const int64_t end = json_integer_value(json_array_get(pair, 1));
        if (first < 0 || first >= end || !ranges_add(&s->rollbacks.samples, first, end))
            return wrong(p, "rollback_samples are no ranges, or too many");
    }
    return 0;
}

static int get_recent(struct parse *p, const json_t *o, struct ckpt_recent *recent)
{
    const json_t *list = json_object_get(o, "recent");
    if (json_array_size(list) > CKPT_RECENT) return wrong(p, "recent has too many steps");
    for (; recent->n < (int)json_array_size(list); recent->n++) {
        const json_t *pair = json_array_get(list, (size_t)recent->n);
        recent->loss[recent->n] = json_number_value(json_array_get(pair, 0));
        recent->grad_norm[recent->n] = json_number_value(json_array_get(pair, 1));
    }
    return 0;
}

static int get_best(struct parse *p, const json_t *o, struct ckpt_state *s)
{
    const json_t *best = json_object_get(o, "best");
    if (!best) return 0;
    if (get_integer(p, best, "step", 0, s->step, &s->best.step) ||
        get_integer(p, best, "tokens", 1, INT64_MAX / 2, &s->best.tokens))
        return -1;
    s->best.loss = get_loss(best, "loss");
    return isfinite(s->best.loss) ? 0 : wrong(p, "the loss of best is no number");
}

static int get_state(struct parse *p, const json_t *o, struct ckpt_state *s)
{
    const json_t *ids = json_object_get(o, "ids");
    const json_t *mesh = json_object_get(o, "mesh"), *f = json_object_get(o, "fingerprints");
    if (get_integer(p, o, "step", 0, INT64_MAX / 2, &s->step) ||
        get_integer(p, o, "tokens", 0, INT64_MAX / 2, &s->tokens) ||
        get_integer(p, o, "samples", 0, INT64_MAX / 2, &s->samples) ||
        get_integer(p, o, "skipped", 0, s->step, &s->skipped) ||
        get_int(p, o, "skipped_in_row", &s->skipped_in_row) ||
        get_hash(p, json_object_get(o, "param_hash"), "param_hash", &s->param_hash) ||
        get_hash(p, json_object_get(f, "train"), "train", &s->train_fingerprint) ||
        get_hash(p, json_object_get(f, "heldout"), "heldout", &s->heldout_fingerprint) ||
        get_hash(p, json_object_get(f, "tokenizer"), "tokenizer", &s->tokenizer_fingerprint) ||
        get_id(p, ids, "bos", &s->bos_id) || get_id(p, ids, "eod", &s->eod_id) ||
        get_id(p, ids, "pad", &s->pad_id) || get_int(p, mesh, "ranks", &s->ranks) ||
        get_int(p, mesh, "dp", &s->dp) || get_int(p, mesh, "tp", &s->tp) ||
        get_int(p, mesh, "ep", &s->ep))
        return -1;
    s->loss = get_loss(o, "loss");
    s->heldout_loss = get_loss(o, "heldout_loss");
    return get_best(p, o, s) || get_rollbacks(p, o, s) || get_recent(p, o, &s->recent) ? -1 : 0;
}

static int get_file(struct parse *p, const json_t *o, struct ckpt_file *f)
{
    if (!get_name(o, f->name, sizeof f->name) || *f->name == '.' || strchr(f->name, '/'))
        return wrong(p, "a file without a usable name");
    return get_integer(p, o, "bytes", 0, INT64_MAX / 2, &f->bytes) ||
           get_hash(p, json_object_get(o, "xxh3"), "xxh3", &f->hash);
}

static int get_shape(struct parse *p, const json_t *o, struct ckpt_tensor *t)
{
    const json_t *shape = json_object_get(o, "shape");
    t->n_dims = (int)json_array_size(shape);
    t->n = 1;
    for (int d = 0; d < t->n_dims && d < 2; d++) {
        t->dim[d] = json_integer_value(json_array_get(shape, (size_t)d));
        if (t->dim[d] < 1 || t->dim[d] > MAX_ELEMENTS / t->n)
            return fault_set(p->fault, CODE_DATA, "%s: shape of %s", p->where, t->name);
        t->n *= t->dim[d];
    }
    if (t->n_dims < 1 || t->n_dims > 2)
        return fault_set(p->fault, CODE_DATA, "%s: %s has %d dimensions, expected 1 or 2", p->where,
                         t->name, t->n_dims);
    return 0;
}

static int get_box(struct parse *p, const json_t *v, const struct ckpt_tensor *t,
                   struct ckpt_box *b)
{
    int64_t x[5];
    for (size_t i = 0; i < 5; i++) x[i] = json_integer_value(json_array_get(v, i));
    *b = (struct ckpt_box){0, x[0], x[1], x[2], x[3], x[4], 0};
    bool good = json_array_size(v) == 6 && b->base >= 0 && b->base < t->n && b->run >= 1 &&
                b->run <= t->n && b->first >= 0 && b->first < b->run && b->stride >= b->run &&
                b->stride <= t->n && b->count >= 1 && b->count <= t->n;
    if (good) { /* the last element; none of these products leaves 64 bits */
        const int64_t last = b->first + b->count - 1, inside = last % b->run;
        good = last / b->run <= t->n / b->stride &&
               b->base + last / b->run * b->stride + inside < t->n;
    }
    if (!good) return fault_set(p->fault, CODE_DATA, "%s: a box of %s", p->where, t->name);
    return get_hash(p, json_array_get(v, 5), "checksum of a box", &b->hash);
}

/* Appends the tensor's boxes; together they hold each of its elements once. */
static int get_boxes(struct parse *p, struct manifest *m, const json_t *o, struct ckpt_tensor *t)
{
    const json_t *boxes = json_object_get(o, "boxes");
    int64_t sum = 0;
    t->first_box = m->n_boxes;
    t->n_boxes = (int)json_array_size(boxes);
    for (int i = 0; i < t->n_boxes; i++) {
        struct ckpt_box *b = &m->box[m->n_boxes++];
        if (get_box(p, json_array_get(boxes, (size_t)i), t, b)) return -1;
        b->tensor = (int)(t - m->tensor);
        sum += b->count;
    }
    if (sum != t->n)
        return fault_set(p->fault, CODE_DATA,
                         "%s: the boxes of %s have %" PRId64 " elements, expected %" PRId64,
                         p->where, t->name, sum, t->n);
    return cover_try_check(t, &m->box[t->first_box], t->n_boxes, p->where, p->fault);
}

static int get_tensor(struct parse *p, struct manifest *m, const json_t *o, struct ckpt_tensor *t)
{
    const char *dtype = json_string_value(json_object_get(o, "dtype"));
    if (!get_name(o, t->name, sizeof t->name)) return wrong(p, "a tensor without a usable name");
    t->dtype = dtype && !strcmp(dtype, dtype_name(DTYPE_BF16)) ? DTYPE_BF16 : DTYPE_F32;
    if (!dtype || strcmp(dtype, dtype_name(t->dtype)) != 0)
        return fault_set(p->fault, CODE_DATA, "%s: dtype of %s, expected f32 or bf16", p->where,
                         t->name);
    if (get_shape(p, o, t) || get_int(p, o, "file", &t->file) ||
        get_integer(p, o, "offset", 0, INT64_MAX / 4, &t->offset))
        return -1;
    const int64_t bytes = t->n * (int64_t)dtype_bytes(t->dtype);
    if (t->file >= m->n_files || t->offset + bytes > m->file[t->file].bytes)
        return fault_set(p->fault, CODE_DATA, "%s: %s lies outside of its file", p->where, t->name);
    return get_boxes(p, m, o, t);
}

static int get_tensors(struct parse *p, struct manifest *m, const json_t *o)
{
    const json_t *files = json_object_get(o, "files"), *tensors = json_object_get(o, "tensors");
    const size_t n_files = json_array_size(files), n_tensors = json_array_size(tensors);
    size_t n_boxes = 0;
    if (n_files < 1 || n_files > MAX_FILES) return wrong(p, "no files, or too many");
    if (n_tensors < 1 || n_tensors > MAX_TENSORS) return wrong(p, "no tensors, or too many");
    for (size_t i = 0; i < n_tensors; i++)
        n_boxes += json_array_size(json_object_get(json_array_get(tensors, i), "boxes"));
    if (n_boxes > MAX_TENSORS) return wrong(p, "too many boxes");
    m->file = calloc(n_files, sizeof *m->file);
    m->tensor = calloc(n_tensors, sizeof *m->tensor);
    m->box = calloc(n_boxes + 1, sizeof *m->box);
    if (!m->file || !m->tensor || !m->box) return wrong(p, "no memory for it");
    for (; m->n_files < (int)n_files; m->n_files++)
        if (get_file(p, json_array_get(files, (size_t)m->n_files), &m->file[m->n_files])) return -1;
    for (; m->n_tensors < (int)n_tensors; m->n_tensors++)
        if (get_tensor(p, m, json_array_get(tensors, (size_t)m->n_tensors),
                       &m->tensor[m->n_tensors]))
            return -1;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const struct ckpt_tensor *const *)a)->name,
                  (*(const struct ckpt_tensor *const *)b)->name);
}

static int sort_names(struct parse *p, struct manifest *m)
{
    const size_t n = (size_t)m->n_tensors;
    m->by_name = malloc(sizeof(struct ckpt_tensor *) * n);
    if (!m->by_name) return wrong(p, "no memory for it");
    for (size_t i = 0; i < n; i++) m->by_name[i] = &m->tensor[i];
    qsort(m->by_name, n, sizeof(struct ckpt_tensor *), compare_names);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(m->by_name[i - 1]->name, m->by_name[i]->name))
            return fault_set(p->fault, CODE_DATA, "%s: %s comes twice", p->where,
                             m->by_name[i]->name);
    return 0;
}

static int get_all(struct parse *p, struct manifest *m, const json_t *o)
{
    const char *format = json_string_value(json_object_get(o, "format"));
    const char *version = json_string_value(json_object_get(o, "version"));
    const char *config = json_string_value(json_object_get(o, "config"));
    const bool old = format && !strcmp(format, FORMAT_2);
    if (!format || (!old && strcmp(format, FORMAT) != 0))
        return fault_set(p->fault, CODE_DATA, "%s: format \"%s\", expected \"%s\"", p->where,
                         format ? format : "", FORMAT);
    if (!version || !config) return wrong(p, "no version, or no config");
    if (strlen(version) >= sizeof m->version) return wrong(p, "a version that is too long");
    strcpy(m->version, version);
    m->config = strdup(config);
    if (!m->config) return wrong(p, "no memory for it");
    return get_state(p, o, &m->state) || (!old && get_sources(p, o, &m->state)) ||
                   get_tensors(p, m, o) || sort_names(p, m)
               ? -1
               : 0;
}

/* The text with zeros where its checksum stands has that checksum. */
static int check_hash(struct parse *p, const char *text)
{
    static const char begin[] = "{\"xxh3\": \"";
    const size_t n = strlen(text);
    uint64_t want = 0;
    char digits[HASH_DIGITS + 1] = "";
    if (strncmp(text, begin, HASH_AT) != 0 || n < HASH_AT + HASH_DIGITS)
        return wrong(p, "does not begin with its checksum");
    memcpy(digits, text + HASH_AT, HASH_DIGITS);
    json_t *string = json_string(digits);
    const int bad = get_hash(p, string, "xxh3", &want);
    json_decref(string);
    if (bad) return bad;
    XXH3_state_t *state = XXH3_createState();
    if (!state) return wrong(p, "no memory for it");
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, text, HASH_AT);
    XXH3_64bits_update(state, "0000000000000000", HASH_DIGITS);
    XXH3_64bits_update(state, text + HASH_AT + HASH_DIGITS, n - HASH_AT - HASH_DIGITS);
    const uint64_t got = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    if (got == want) return 0;
    return fault_set(p->fault, CODE_DATA,
                     "%s: checksum %016" PRIx64 ", expected %016" PRIx64 ": it has been altered",
                     p->where, got, want);
}

int manifest_try_parse(struct manifest *m, const char *text, const char *where, struct fault *fault)
{
    struct parse p = {where, fault};
    json_error_t error;
    *m = (struct manifest){0};
    if (check_hash(&p, text)) return -1;
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!o) return fault_set(fault, CODE_DATA, "%s:%d: %s", where, error.line, error.text);
    const int bad = get_all(&p, m, o);
    json_decref(o);
    return bad;
}

int manifest_try_check_files(const struct manifest *m, const char *dir, struct fault *fault)
{
    char path[PATH_BYTES];
    struct stat st;
    for (int i = 0; i < m->n_files; i++) {
        const struct ckpt_file *f = &m->file[i];
        path_print(path, "%s/%s", dir, f->name);
        if (stat(path, &st) != 0)
            return fault_set(fault, CODE_NO_INPUT, "%s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode) || st.st_size != f->bytes)
            return fault_set(fault, CODE_DATA, "%s: %lld bytes, expected %lld", path,
                             (long long)st.st_size, (long long)f->bytes);
    }
    return 0;
}

int manifest_try_read(struct manifest *m, const char *dir, struct fault *fault)
{
    char path[PATH_BYTES];
    int64_t bytes;
    *m = (struct manifest){0};
    path_print(path, "%s/" CKPT_MANIFEST, dir);
    char *text = io_try_read_file(path, MAX_MANIFEST, &bytes, fault);
    if (!text) return -1;
    int bad = strlen(text) == (size_t)bytes ? manifest_try_parse(m, text, path, fault)
                                            : fault_set(fault, CODE_DATA, "%s: a zero byte", path);
    free(text);
    if (!bad) bad = manifest_try_check_files(m, dir, fault);
    return bad;
}

void manifest_free(struct manifest *m)
{
    free(m->config);
    free(m->file);
    free(m->tensor);
    free(m->box);
    free((void *)m->by_name);
    *m = (struct manifest){0};
}

const struct ckpt_tensor *manifest_find(const struct manifest *m, const char *name)
{
    struct ckpt_tensor key;
    if (strlen(name) >= sizeof key.name) return NULL;
    strcpy(key.name, name);
    const struct ckpt_tensor *wanted = &key, **found = NULL;
    if (m->by_name)
        found = bsearch(&wanted, m->by_name, (size_t)m->n_tensors, sizeof wanted, compare_names);
    for (int i = 0; !m->by_name && i < m->n_tensors; i++)
        if (!strcmp(m->tensor[i].name, name)) return &m->tensor[i];
    return found ? *found : NULL;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct ckpt_tensor *x = *(const struct ckpt_tensor *const *)a;
    const struct ckpt_tensor *y = *(const struct ckpt_tensor *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

const struct ckpt_tensor **ckpt_by_offset(const struct ckpt_tensor *tensor, int n, int file)
{
    const struct ckpt_tensor **in = calloc((size_t)n + 1, sizeof *in);
    CHECK(in, "no memory for %d tensors", n);
    int n_in = 0;
    for (int i = 0; i < n; i++)
        if (tensor[i].file == file) in[n_in++] = &tensor[i];
    qsort((void *)in, (size_t)n_in, sizeof *in, compare_offsets);
    return in;
}
