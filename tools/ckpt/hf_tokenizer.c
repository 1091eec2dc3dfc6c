/* hf_tokenizer.c - see hf_tokenizer.h. */
#include "hf_tokenizer.h"

#include "ckpt/io.h"
#include "data/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { N_BYTES = 256, MAX_FILE = 1 << 30 };

/* What a byte is written as in the vocabulary of byte-level BPE: printable characters of Latin-1 as
 * themselves, the others, in their order, as those from U+0100 on. */
static void put_byte_names(json_t *vocab)
{
    int next = 0x100;
    for (int b = 0; b < N_BYTES; b++) {
        const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        const int c = plain ? b : next++;
        char name[3] = {(char)c};
        if (c >= 0x80) {
            name[0] = (char)(0xc0 | c >> 6);
            name[1] = (char)(0x80 | (c & 0x3f));
        }
        json_object_set_new(vocab, name, json_integer(b));
    }
}

/* Byte-level BPE without a merge; 256 ends a document where the model has it. */
static json_t *make_bytes(int64_t vocab_size)
{
    json_t *vocab = json_object(), *added = json_array();
    put_byte_names(vocab);
    if (vocab_size > N_BYTES)
        json_array_append_new(added,
                              json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", N_BYTES,
                                        "content", "<|endoftext|>", "single_word", 0, "lstrip", 0,
                                        "rstrip", 0, "normalized", 0, "special", 1));
    return json_pack(
        "{s:s, s:n, s:n, s:o, s:n, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b},"
        " s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:[]}}",
        "version", "1.0", "truncation", "padding", "added_tokens", added, "normalizer",
        "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex",
        0, "post_processor", "decoder", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets",
        1, "use_regex", 0, "model", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
        "ignore_merges", 0, "vocab", vocab, "merges");
}

static void drop_ids(json_t *list, const char *key, int64_t limit)
{
    for (size_t i = json_array_size(list); i-- > 0;)
        if (json_integer_value(json_object_get(json_array_get(list, i), key)) >= limit)
            json_array_remove(list, i);
}

/* Both halves of a merge, "left right" or [left, right], and what they make are in the vocabulary.
 */
static bool is_kept(const json_t *vocab, const json_t *merge)
{
    const char *both = json_string_value(merge);
    const char *space = both ? strchr(both, ' ') : NULL;
    const char *left = both ? both : json_string_value(json_array_get(merge, 0));
    const char *right = space ? space + 1 : json_string_value(json_array_get(merge, 1));
    if (!left || !right) return false;
    const size_t n = space ? (size_t)(space - both) : strlen(left), all = n + strlen(right) + 1;
    char *name = malloc(all);
    CHECK(name, "no memory for a merge");
    snprintf(name, all, "%.*s%s", (int)n, left, right);
    bool kept = json_object_get(vocab, name) && json_object_get(vocab, right);
    name[n] = '\0';
    kept = kept && json_object_get(vocab, name);
    free(name);
    return kept;
}

/* A template that would add a token which is no more. */
static bool adds_cut(const json_t *processor, int64_t limit)
{
    const char *name;
    json_t *token, *id;
    size_t i;
    json_object_foreach(json_object_get(processor, "special_tokens"), name, token)
    {
        json_array_foreach(json_object_get(token, "ids"), i, id)
        {
            if (json_integer_value(id) >= limit) return true;
        }
    }
    return false;
}

/* Without everything of ids from limit on; what is left keeps its id. */
static void cut(json_t *root, int64_t limit)
{
    const char *name;
    json_t *id, *merge;
    void *next;
    size_t i;
    json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
    json_t *kept = json_array(), *processor = json_object_get(root, "post_processor");
    json_t *parts = json_object_get(processor, "processors");
    json_object_foreach_safe(vocab, next, name, id)
    {
        if (json_integer_value(id) >= limit) json_object_del(vocab, name);
    }
    json_array_foreach(json_object_get(model, "merges"), i, merge)
    {
        if (is_kept(vocab, merge)) json_array_append(kept, merge);
    }
    json_object_set_new(model, "merges", kept);
    drop_ids(json_object_get(root, "added_tokens"), "id", limit);
    for (size_t p = json_array_size(parts); p-- > 0;)
        if (adds_cut(json_array_get(parts, p), limit)) json_array_remove(parts, p);
    if (adds_cut(processor, limit)) json_object_set_new(root, "post_processor", json_null());
}

/* What the program itself makes of the file. */
static int try_check(struct hf_tokenizer *t, const char *path, int64_t max_vocab,
                     int64_t vocab_size, uint64_t fingerprint, struct fault *fault)
{
    struct tokenizer *tok = tokenizer_try_load(path, max_vocab, fault);
    if (!tok) return -1;
    const int64_t n_ids = tokenizer_vocab_size(tok);
    const uint64_t found = tokenizer_hash(tok);
    t->eod_id = tokenizer_eod(tok);
    tokenizer_free(tok);
    if (n_ids > vocab_size)
        return fault_set(fault, CODE_CONFIG,
                         "%s: found %" PRId64 " ids, expected at most model.vocab_size %" PRId64
                         " (--max-vocab N takes those below N)",
                         path, n_ids, vocab_size);
    if (fingerprint && found != fingerprint)
        return fault_set(fault, CODE_CONFIG,
                         "%s: found tokenizer %016" PRIx64 ", expected that of the training data, "
                         "%016" PRIx64 " (dsv3-tokenize --max-vocab N: the same here)",
                         path, found, fingerprint);
    return 0;
}

static int try_read(struct hf_tokenizer *t, const char *path, int64_t max_vocab,
                    struct fault *fault)
{
    json_error_t error;
    t->text = io_try_read_file(path, MAX_FILE, &t->bytes, fault);
    if (!t->text) return -1;
    t->root = json_loadb(t->text, (size_t)t->bytes, 0, &error);
    if (!t->root) return fault_set(fault, CODE_DATA, "%s:%d: %s", path, error.line, error.text);
    if (!max_vocab) return 0;
    cut(t->root, max_vocab);
    free(t->text);
    t->text = NULL;
    return 0;
}

int hf_tokenizer_try_load(struct hf_tokenizer *t, const char *path, int64_t max_vocab,
                          int64_t vocab_size, uint64_t fingerprint, struct fault *fault)
{
    struct tokenizer *bytes = tokenizer_init_bytes();
    const bool is_bytes = fingerprint == tokenizer_hash(bytes);
    tokenizer_free(bytes);
    *t = (struct hf_tokenizer){.eod_id = -1};
    if (path) {
        if (try_check(t, path, max_vocab, vocab_size, fingerprint, fault) ||
            try_read(t, path, max_vocab, fault))
            return -1;
    } else if (is_bytes && vocab_size >= N_BYTES) {
        t->root = make_bytes(vocab_size);
    } else {
        return 0;
    }
    if (!t->text) {
        t->text = t->root ? json_dumps(t->root, JSON_INDENT(1)) : NULL;
        CHECK(t->text, "no memory for a tokenizer");
        t->bytes = (int64_t)strlen(t->text);
    }
    return 0;
}

void hf_tokenizer_free(struct hf_tokenizer *t)
{
    json_decref(t->root);
    free(t->text);
    *t = (struct hf_tokenizer){.eod_id = -1};
}

/* As the file writes it, or NULL. */
static const char *token_of(const struct hf_tokenizer *t, int id)
{
    const char *name;
    json_t *value;
    size_t i;
    json_array_foreach(json_object_get(t->root, "added_tokens"), i, value)
    {
        if (json_integer_value(json_object_get(value, "id")) == id)
            return json_string_value(json_object_get(value, "content"));
    }
    json_object_foreach(json_object_get(json_object_get(t->root, "model"), "vocab"), name, value)
    {
        if (json_integer_value(value) == id) return name;
    }
    return NULL;
}

char *hf_tokenizer_config(const struct hf_tokenizer *t, int bos_id, int eos_id, int pad_id,
                          int max_length)
{
    static const char *const keys[] = {"bos_token", "eos_token", "pad_token"};
    const int ids[] = {bos_id, eos_id, pad_id};
    json_t *root = json_pack("{s:s, s:b, s:i}", "tokenizer_class", "PreTrainedTokenizerFast",
                             "clean_up_tokenization_spaces", 0, "model_max_length", max_length);
    for (int i = 0; i < 3; i++) {
        const char *token = ids[i] >= 0 ? token_of(t, ids[i]) : NULL;
        if (token) json_object_set_new(root, keys[i], json_string(token));
    }
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    CHECK(text, "no memory for tokenizer_config.json");
    json_decref(root);
    return text;
}
