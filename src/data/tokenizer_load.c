/* tokenizer_load.c - a tokenizer.json of Hugging Face -> struct tokenizer; see tokenizer.h. What is
 * not understood is refused by its name, since a guess would give other ids. */
#include "data/tokenizer_inside.h"

#include "base/file.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { N_BYTES = 256, N_ALPHABET = 324, MAX_IDS = 1 << 24, MAX_TOKEN_BYTES = 4096 };
#define GPT2_PATTERN                                                                               \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

struct load {
    const char *path;
    struct tokenizer *tok;
    json_t *root, *vocab;    /* vocab borrowed from root */
    int64_t limit;           /* ids are below it */
    int byte_of[N_ALPHABET]; /* byte that a character of the vocabulary stands for, -1: none */
    bool has_byte_level;
    XXH64_state_t *hash;
    struct fault *fault;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct load *ld, const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return fault_set(ld->fault, CODE_DATA, "%s: %s", ld->path, why);
}

/* A value in words, for messages. */
static const char *shown(const json_t *value)
{
    if (json_is_string(value)) return json_string_value(value);
    return json_is_object(value)   ? "an object"
           : json_is_array(value)  ? "a list"
           : json_is_true(value)   ? "true"
           : json_is_false(value)  ? "false"
           : json_is_number(value) ? "a number"
           : value                 ? "null"
                                   : "nothing";
}

static bool is_listed(const char *name, const char *names)
{
    const size_t n = strlen(name);
    for (const char *at = names; *at; at += strcspn(at, " ") + 1)
        if (strcspn(at, " ") == n && strncmp(at, name, n) == 0) return true;
    return false;
}

/* Every key of the object must be in the list of names, each ended by a space. */
static int only_keys(struct load *ld, json_t *object, const char *where, const char *names)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return refuse(ld, "%s is %s, expected an object", where, shown(object));
    json_object_foreach(object, key, value)
    {
        if (!is_listed(key, names)) return refuse(ld, "%s.%s is not supported", where, key);
    }
    return 0;
}

/* null, "" and nothing are the same. */
static int want_none(struct load *ld, json_t *object, const char *where, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value) || !strcmp(shown(value), "")) return 0;
    return refuse(ld, "%s.%s is %s, expected none", where, key, shown(value));
}

static int want_false(struct load *ld, json_t *object, const char *where, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value) || json_is_false(value)) return 0;
    return refuse(ld, "%s.%s is %s, expected false", where, key, shown(value));
}

/* The characters that stand for bytes: printable ones of Latin-1 for themselves, the others of the
 * 256 for the code points from 256 on, in their order. */
static int alphabet_char(int byte)
{
    int n_before = 0;
    for (int b = 0; b <= byte; b++) {
        const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte && plain) return b;
        n_before += !plain;
    }
    return 255 + n_before;
}

static char *pool_take(struct load *ld, int64_t n)
{
    struct tokenizer *tok = ld->tok;
    char *p = tok->pool + tok->n_pool;
    CHECK(tok->n_pool + n <= tok->pool_bytes, "%s: texts longer than their file", ld->path);
    tok->n_pool += n;
    return p;
}

/* The bytes that a token of the vocabulary stands for; its own text if it has other characters. */
static struct token_text token_bytes(struct load *ld, const char *name)
{
    const int64_t n = (int64_t)strlen(name);
    struct token_text text = {pool_take(ld, n), 0};
    char *to = (char *)text.at;

    for (int64_t i = 0; i < n;) {
        int bytes;
        const uint32_t c = unicode_decode(name + i, n - i, &bytes);
        if (c >= N_ALPHABET || ld->byte_of[c] < 0) {
            memcpy(to, name, (size_t)n);
            text.n = n;
            return text;
        }
        to[text.n++] = (char)ld->byte_of[c];
        i += bytes;
    }
    return text;
}

static int check_id(struct load *ld, const char *where, const char *name, const json_t *value)
{
    const json_int_t id = json_integer_value(value);
    if (json_is_integer(value) && id >= 0 && id < MAX_IDS) return 0;
    return refuse(ld, "%s: the id of %s is %s%lld, expected a number below %d", where, name,
                  json_is_integer(value) ? "" : "no number: ", (long long)id, MAX_IDS);
}

/* PyPI's tokenizers does not take the ids of added tokens from the file: those of texts in the
 * vocabulary are the vocabulary's, others follow it. next: the first that is free. */
static int check_added_id(struct load *ld, const char *name, int64_t id, int64_t *next)
{
    const json_t *known = json_object_get(ld->vocab, name);
    const int64_t theirs = known ? json_integer_value(known) : *next;

    if (id != theirs)
        return refuse(ld, "added token %.100s has id %ld, but tokenizers gives it %ld, %s", name,
                      (long)id, (long)theirs,
                      known ? "its id in model.vocab" : "the first one behind the others");
    if (id >= *next) *next = id + 1;
    return 0;
}

/* One of added_tokens and its id, which tokenizers would give it, too; seen: those before it. */
static int try_count_added(struct load *ld, size_t i, json_t *seen, int64_t *next, int64_t *id)
{
    json_t *token = json_array_get(json_object_get(ld->root, "added_tokens"), i);
    const json_t *content = json_object_get(token, "content"),
                 *value = json_object_get(token, "id");
    const char *name = json_string_value(content);

    if (!name || !*name)
        return refuse(ld, "added_tokens[%zu].content is %s, expected a text", i, shown(content));
    if (check_id(ld, "added_tokens", name, value) != 0) return -1;
    if (json_object_get(seen, name)) return refuse(ld, "added token %.100s comes twice", name);
    json_object_set_new(seen, name, json_true());
    *id = json_integer_value(value);
    return check_added_id(ld, name, *id, next);
}

/* The ids that remain and how many there are; room for them. */
static int count_ids(struct load *ld)
{
    const size_t n_added = json_array_size(json_object_get(ld->root, "added_tokens"));
    json_t *value, *seen = json_object();
    const char *name;
    int64_t largest = -1, next = (int64_t)json_object_size(ld->vocab), id = 0;
    int bad = 0;

    json_object_foreach(ld->vocab, name, value)
    {
        bad = check_id(ld, "model.vocab", name, value);
        if (bad) break;
        id = json_integer_value(value);
        if (id < ld->limit && id > largest) largest = id;
    }
    for (size_t i = 0; i < n_added && !bad; i++) {
        bad = try_count_added(ld, i, seen, &next, &id);
        if (id < ld->limit && id > largest) largest = id;
    }
    json_decref(seen);
    if (bad) return -1;
    ld->tok->vocab_size = largest + 1;
    ld->tok->token = calloc((size_t)largest + 2, sizeof *ld->tok->token);
    CHECK(ld->tok->token, "no memory for %ld tokens", (long)largest + 1);
    return 0;
}

static int read_vocab(struct load *ld)
{
    const char *name;
    json_t *value;

    json_object_foreach(ld->vocab, name, value)
    {
        const int64_t id = json_integer_value(value);
        if (id >= ld->limit) continue;
        struct token_text *text = &ld->tok->token[id];
        if (text->at) return refuse(ld, "model.vocab: two tokens have id %ld", (long)id);
        *text = token_bytes(ld, name);
    }
    return 0;
}

static int compare_added(const void *a, const void *b)
{
    return strcmp(((const struct added_token *)a)->text, ((const struct added_token *)b)->text);
}

static void add_to(struct added_tokens *added, struct added_token token)
{
    bool *begins = &added->begins[(unsigned char)token.text[0]];

    added->at[added->n++] = token;
    added->n_begins += !*begins;
    *begins = true;
}

static int read_added_token(struct load *ld, json_t *object)
{
    const char *content = json_string_value(json_object_get(object, "content"));
    const int64_t n = (int64_t)strlen(content);
    struct tokenizer *tok = ld->tok;
    struct added_token token = {.n = n,
                                .id = (uint32_t)json_integer_value(json_object_get(object, "id")),
                                .special = json_is_true(json_object_get(object, "special")),
                                .normalized = json_is_true(json_object_get(object, "normalized"))};
    char where[128];
    int64_t n_form = n;

    snprintf(where, sizeof where, "added token %.100s", content);
    if (only_keys(ld, object, where, "id content single_word lstrip rstrip normalized special "))
        return -1;
    static const char *const off[] = {"single_word", "lstrip", "rstrip"};
    for (int k = 0; k < 3; k++)
        if (want_false(ld, object, where, off[k]) != 0) return -1;
    if (token.id >= ld->limit) return 0;
    const char *form =
        tok->nfc && token.normalized ? unicode_nfc(tok->nfc, content, &n_form) : content;
    if (n_form != n || memcmp(form, content, (size_t)n) != 0)
        return refuse(ld, "%s is normalized, but not in form NFC itself", where);
    char *text = pool_take(ld, n + 1);
    token.text = memcpy(text, content, (size_t)n + 1);
    struct token_text *known = &tok->token[token.id];
    if (known->at && (known->n != n || memcmp(known->at, text, (size_t)n) != 0))
        return refuse(ld, "%s is in model.vocab, where its letters stand for other bytes", where);
    *known = (struct token_text){text, n};
    add_to(&tok->added[token.normalized], token);
    if (token.special) tok->special[tok->n_special++] = token;
    return 0;
}

static int read_added(struct load *ld)
{
    json_t *list = json_object_get(ld->root, "added_tokens"), *object;
    struct tokenizer *tok = ld->tok;
    size_t i;

    if (list && !json_is_array(list))
        return refuse(ld, "added_tokens is %s, expected a list", shown(list));
    const size_t n = json_array_size(list) + 1;
    tok->special = calloc(n, sizeof *tok->special);
    CHECK(tok->special, "no memory for %zu added tokens", n);
    for (int k = 0; k < 2; k++) {
        tok->added[k].at = calloc(n, sizeof *tok->added[k].at);
        CHECK(tok->added[k].at, "no memory for %zu added tokens", n);
    }
    json_array_foreach(list, i, object) if (read_added_token(ld, object) != 0) return -1;
    for (int k = 0; k < 2; k++)
        qsort(tok->added[k].at, (size_t)tok->added[k].n, sizeof *tok->added[k].at, compare_added);
    return 0;
}

/* The id of a token by its name in the vocabulary, or -1 with fault. */
static int64_t named_id(struct load *ld, const char *name, size_t i)
{
    const json_t *id = json_object_get(ld->vocab, name);
    if (id) return json_integer_value(id);
    return refuse(ld, "model.merges[%zu]: %s is not in model.vocab", i, name);
}

/* Both halves of "left right" or [left, right], and the two as one, NUL-terminated. */
static int split_merge(struct load *ld, const json_t *merge, size_t i,
                       char part[3][MAX_TOKEN_BYTES])
{
    const char *left = json_string_value(json_array_get(merge, 0)), *right = NULL;
    size_t n = 0;

    if (json_is_string(merge)) {
        left = json_string_value(merge);
        right = strchr(left, ' ');
        if (right) n = (size_t)(right++ - left);
    } else if (left && json_array_size(merge) == 2) {
        right = json_string_value(json_array_get(merge, 1));
        n = strlen(left);
    }
    if (!right || n == 0 || !*right || strchr(right, ' '))
        return refuse(ld, "model.merges[%zu] is %s, expected two tokens", i, shown(merge));
    if (n + strlen(right) >= MAX_TOKEN_BYTES)
        return refuse(ld, "model.merges[%zu] makes a token of more than %d bytes", i,
                      MAX_TOKEN_BYTES - 1);
    snprintf(part[0], MAX_TOKEN_BYTES, "%.*s", (int)n, left);
    snprintf(part[1], MAX_TOKEN_BYTES, "%s", right);
    snprintf(part[2], MAX_TOKEN_BYTES, "%.*s%s", (int)n, left, right);
    return 0;
}

static int read_merges(struct load *ld, json_t *merges)
{
    static char part[3][MAX_TOKEN_BYTES];
    json_t *merge;
    size_t i;

    json_array_foreach(merges, i, merge)
    {
        int64_t id[3];
        bool kept = true;
        if (split_merge(ld, merge, i, part) != 0) return -1;
        for (int k = 0; k < 3; k++) {
            id[k] = named_id(ld, part[k], i);
            if (id[k] < 0) return -1;
            kept = kept && id[k] < ld->limit;
        }
        if (!kept) continue;
        bpe_add_merge(ld->tok->bpe, (uint32_t)id[0], (uint32_t)id[1], (uint32_t)id[2]);
        XXH64_update(ld->hash, id, sizeof id);
    }
    return 0;
}

static int begin_bpe(struct load *ld, int64_t n_merges)
{
    uint32_t byte_id[N_BYTES];

    for (int b = 0; b < N_BYTES; b++) {
        char name[UNICODE_MAX_BYTES + 1] = {0};
        unicode_encode((uint32_t)alphabet_char(b), name);
        const json_t *id = json_object_get(ld->vocab, name);
        if (!id)
            return refuse(ld, "model.vocab lacks %s, the byte 0x%02x: expected byte-level BPE",
                          name, b);
        if (json_integer_value(id) >= ld->limit)
            return refuse(ld, "the byte 0x%02x has id %lld, not below the %lld that are kept", b,
                          (long long)json_integer_value(id), (long long)ld->limit);
        byte_id[b] = (uint32_t)json_integer_value(id);
    }
    ld->tok->bpe = bpe_init(byte_id, n_merges);
    return 0;
}

static int read_model(struct load *ld)
{
    json_t *model = json_object_get(ld->root, "model"), *merges;
    const char *type = shown(json_object_get(model, "type"));

    if (!json_is_object(model)) return refuse(ld, "model is %s, expected an object", shown(model));
    ld->vocab = json_object_get(model, "vocab");
    merges = json_object_get(model, "merges");
    /* GPT-2's own file does not say: what has merges is BPE */
    const bool says = json_object_get(model, "type") || !ld->vocab || !merges;
    if (says && strcmp(type, "BPE") != 0) return refuse(ld, "model.type is %s, expected BPE", type);
    if (only_keys(ld, model, "model",
                  "type dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk "
                  "byte_fallback ignore_merges vocab merges ") != 0 ||
        want_none(ld, model, "model", "dropout") != 0 ||
        want_none(ld, model, "model", "continuing_subword_prefix") != 0 ||
        want_none(ld, model, "model", "end_of_word_suffix") != 0 ||
        want_false(ld, model, "model", "byte_fallback") != 0)
        return -1;
    if (!json_is_object(ld->vocab) || !json_is_array(merges))
        return refuse(ld, "model.vocab is %s and model.merges is %s, expected an object and a list",
                      shown(ld->vocab), shown(merges));
    if (begin_bpe(ld, (int64_t)json_array_size(merges)) != 0 || count_ids(ld) != 0 ||
        read_vocab(ld) != 0 || read_merges(ld, merges) != 0)
        return -1;
    if (json_is_true(json_object_get(model, "ignore_merges"))) {
        for (int64_t id = 0; id < ld->tok->vocab_size; id++)
            if (ld->tok->token[id].at)
                bpe_add_whole(ld->tok->bpe, ld->tok->token[id].at, ld->tok->token[id].n,
                              (uint32_t)id);
        XXH64_update(ld->hash, "whole", sizeof "whole");
    }
    return 0;
}

static int add_step(struct load *ld, const char *pattern)
{
    struct tokenizer *tok = ld->tok;
    struct fault fault;

    if (tok->n_steps == TOKENIZER_MAX_STEPS)
        return refuse(ld, "more than %d pre-tokenizers", TOKENIZER_MAX_STEPS);
    if (pattern_try_compile(&tok->step[tok->n_steps], &tok->alphabet, pattern, &fault) != 0)
        return refuse(ld, "%s", fault.why);
    tok->n_steps++;
    XXH64_update(ld->hash, pattern, strlen(pattern) + 1);
    return 0;
}

static int read_split(struct load *ld, json_t *step)
{
    json_t *pattern = json_object_get(step, "pattern");
    json_t *regex = json_object_get(pattern, "Regex"), *how = json_object_get(step, "behavior");

    if (only_keys(ld, step, "pre_tokenizer Split", "type pattern behavior invert ") != 0 ||
        only_keys(ld, pattern, "pre_tokenizer Split.pattern", "Regex ") != 0 ||
        want_false(ld, step, "pre_tokenizer Split", "invert") != 0)
        return -1;
    if (!json_is_string(regex))
        return refuse(ld, "pre_tokenizer Split.pattern.Regex is %s, expected a text", shown(regex));
    if (strcmp(shown(how), "Isolated") != 0)
        return refuse(ld, "pre_tokenizer Split.behavior is %s, expected Isolated", shown(how));
    return add_step(ld, json_string_value(regex));
}

static int read_byte_level(struct load *ld, json_t *step)
{
    if (only_keys(ld, step, "pre_tokenizer ByteLevel",
                  "type add_prefix_space trim_offsets use_regex ") != 0 ||
        want_false(ld, step, "pre_tokenizer ByteLevel", "add_prefix_space") != 0)
        return -1;
    ld->has_byte_level = true;
    return json_is_false(json_object_get(step, "use_regex")) ? 0 : add_step(ld, GPT2_PATTERN);
}

static int read_pre_tokenizer(struct load *ld, json_t *step)
{
    const char *type = shown(json_object_get(step, "type"));
    json_t *list = json_object_get(step, "pretokenizers"), *each;
    size_t i;

    if (!json_is_object(step))
        return refuse(ld, "pre_tokenizer is %s, expected one with ByteLevel", shown(step));
    if (strcmp(type, "Sequence") == 0) {
        if (only_keys(ld, step, "pre_tokenizer Sequence", "type pretokenizers ") != 0) return -1;
        if (!json_is_array(list))
            return refuse(ld, "pre_tokenizer Sequence is %s, expected a list", shown(list));
        json_array_foreach(list, i, each) if (read_pre_tokenizer(ld, each) != 0) return -1;
        return 0;
    }
    if (ld->has_byte_level)
        return refuse(ld, "pre_tokenizer %s behind ByteLevel is not supported", type);
    if (strcmp(type, "Split") == 0) return read_split(ld, step);
    if (strcmp(type, "ByteLevel") == 0) return read_byte_level(ld, step);
    if (strcmp(type, "Digits") != 0)
        return refuse(ld,
                      "pre_tokenizer %s is not supported (Sequence, Split, Digits, ByteLevel "
                      "are)",
                      type);
    if (only_keys(ld, step, "pre_tokenizer Digits", "type individual_digits ") != 0) return -1;
    return add_step(ld, json_is_true(json_object_get(step, "individual_digits")) ? "\\p{N}"
                                                                                 : "\\p{N}+");
}

/* NFC or none, also as a sequence of them. */
static int read_normalizer(struct load *ld, const json_t *normalizer)
{
    const json_t *list = json_object_get(normalizer, "normalizers"), *each;
    const char *type = shown(json_object_get(normalizer, "type"));
    size_t i;

    if (!normalizer || json_is_null(normalizer)) return 0;
    if (strcmp(type, "Sequence") == 0 && json_is_array(list)) {
        json_array_foreach(list, i, each) if (read_normalizer(ld, each) != 0) return -1;
        return 0;
    }
    if (strcmp(type, "NFC") != 0)
        return refuse(ld, "normalizer %s is not supported: expected NFC or none", type);
    if (!ld->tok->nfc) {
        ld->tok->nfc = unicode_nfc_init();
        XXH64_update(ld->hash, "NFC", sizeof "NFC");
    }
    return 0;
}

static int check_decoder(struct load *ld)
{
    json_t *decoder = json_object_get(ld->root, "decoder");
    const char *type = shown(json_object_get(decoder, "type"));

    if (!decoder || json_is_null(decoder) || strcmp(type, "ByteLevel") == 0) return 0;
    return refuse(ld, "decoder %s is not supported: expected ByteLevel", type);
}

/* The ids that the merges do not tell: texts and what they are. */
static void hash_tokens(struct load *ld)
{
    const struct tokenizer *tok = ld->tok;

    for (int64_t id = 0; id < tok->vocab_size; id++) {
        const struct token_text *t = &tok->token[id];
        XXH64_update(ld->hash, &t->n, sizeof t->n);
        if (t->at) XXH64_update(ld->hash, t->at, (size_t)t->n);
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < tok->added[k].n; i++)
            XXH64_update(ld->hash, &tok->added[k].at[i].id, sizeof tok->added[k].at[i].id);
}

static int build(struct load *ld)
{
    struct tokenizer *tok = ld->tok;

    for (int c = 0; c < N_ALPHABET; c++) ld->byte_of[c] = -1;
    for (int b = 0; b < N_BYTES; b++) ld->byte_of[alphabet_char(b)] = b;
    tok->step = calloc(TOKENIZER_MAX_STEPS, sizeof *tok->step);
    CHECK(tok->step, "no memory for the pre-tokenizers");
    alphabet_init(&tok->alphabet);
    if (only_keys(ld, ld->root, "the file",
                  "version truncation padding added_tokens normalizer pre_tokenizer "
                  "post_processor decoder model ") != 0 ||
        want_none(ld, ld->root, "the file", "truncation") != 0 ||
        want_none(ld, ld->root, "the file", "padding") != 0 ||
        read_normalizer(ld, json_object_get(ld->root, "normalizer")) != 0 ||
        check_decoder(ld) != 0 || read_model(ld) != 0 || read_added(ld) != 0 ||
        read_pre_tokenizer(ld, json_object_get(ld->root, "pre_tokenizer")) != 0)
        return -1;
    if (!ld->has_byte_level)
        return refuse(ld, "pre_tokenizer has no ByteLevel: expected byte-level BPE");
    struct fault fault;
    if (alphabet_try_finish(&tok->alphabet, &fault) != 0) return refuse(ld, "%s", fault.why);
    for (int i = 0; i < tok->n_steps; i++) pattern_finish(&tok->step[i]);
    hash_tokens(ld);
    tok->hash = XXH64_digest(ld->hash);
    return 0;
}

/* The whole file, NULL with fault. New memory. */
static char *read_file(struct load *ld, int64_t *bytes)
{
    struct stat st;
    const char *why;
    const int fd = file_open(ld->path, &st, &why);

    if (fd < 0) {
        fault_set(ld->fault, CODE_NO_INPUT, "%s: %s", ld->path, why);
        return NULL;
    }
    char *text = malloc((size_t)st.st_size + 1);
    CHECK(text, "no memory for %s of %ld bytes", ld->path, (long)st.st_size);
    *bytes = file_read(fd, ld->path, text, (size_t)st.st_size, 0);
    close(fd);
    if (*bytes == st.st_size) return text;
    fault_set(ld->fault, CODE_NO_INPUT, "%s: reading byte %ld of %ld failed", ld->path,
              (long)*bytes, (long)st.st_size);
    free(text);
    return NULL;
}

struct tokenizer *tokenizer_try_load(const char *path, int64_t max_vocab, struct fault *fault)
{
    struct load ld = {.path = path, .limit = max_vocab > 0 ? max_vocab : MAX_IDS, .fault = fault};
    json_error_t error;
    int64_t bytes;
    char *text = read_file(&ld, &bytes);

    if (!text) return NULL;
    ld.root = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!ld.root) {
        refuse(&ld, "line %d, byte %d: %s", error.line, error.position, error.text);
        return NULL;
    }
    ld.tok = mem_alloc(sizeof *ld.tok, "tokenizer");
    ld.tok->pool_bytes = bytes;
    ld.tok->pool = malloc((size_t)bytes + 1);
    ld.hash = XXH64_createState();
    CHECK(ld.tok->pool && ld.hash, "no memory for the tokens of %s", path);
    XXH64_reset(ld.hash, 0);
    const int bad = build(&ld);
    XXH64_freeState(ld.hash);
    json_decref(ld.root);
    if (!bad) return ld.tok;
    tokenizer_free(ld.tok);
    return NULL;
}
