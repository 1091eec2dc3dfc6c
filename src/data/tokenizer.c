/* tokenizer.c - encoding and decoding with a tokenizer; see tokenizer.h. Reading its file is in
 * tokenizer_load.c. */
#include "data/tokenizer_inside.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { N_BYTES = 256 };
#define BYTES_DEFINITION "bytes: id is the byte's value, 256 ends a document"

struct tokenizer *tokenizer_init_bytes(void)
{
    struct tokenizer *tok = mem_alloc(sizeof *tok, "tokenizer");

    tok->is_bytes = true;
    tok->vocab_size = N_BYTES + 1;
    tok->hash = XXH64(BYTES_DEFINITION, strlen(BYTES_DEFINITION), 0);
    tok->pool = malloc(N_BYTES);
    tok->token = calloc((size_t)tok->vocab_size, sizeof *tok->token);
    CHECK(tok->pool && tok->token, "no memory for %d tokens", N_BYTES);
    for (int b = 0; b < N_BYTES; b++) {
        tok->pool[b] = (char)b;
        tok->token[b] = (struct token_text){tok->pool + b, 1};
    }
    tok->token[N_BYTES].at = "";
    return tok;
}

void tokenizer_free(struct tokenizer *tok)
{
    if (!tok) return;
    bpe_free(tok->bpe);
    alphabet_free(&tok->alphabet);
    free(tok->class);
    free(tok->step);
    free(tok->added[0].at);
    free(tok->added[1].at);
    free(tok->special);
    free(tok->token);
    free(tok->pool);
    mem_free(tok);
}

int64_t tokenizer_vocab_size(const struct tokenizer *tok)
{
    return tok->vocab_size;
}
uint64_t tokenizer_hash(const struct tokenizer *tok)
{
    return tok->hash;
}
bool tokenizer_is_local(const struct tokenizer *tok)
{
    return tok->is_bytes;
}

int64_t tokenizer_find(const struct tokenizer *tok, const char *text)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < tok->added[k].n; i++)
            if (strcmp(tok->added[k].at[i].text, text) == 0) return tok->added[k].at[i].id;
    return -1;
}

int64_t tokenizer_eod(const struct tokenizer *tok)
{
    static const char *const known[] = {"<｜end▁of▁sentence｜>", "<|endoftext|>", "<|end_of_text|>",
                                        "</s>"};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const int64_t id = tokenizer_find(tok, known[k]);
        if (id >= 0) return id;
    }
    return -1;
}

const char *tokenizer_special(const struct tokenizer *tok, int i, uint32_t *id)
{
    if (i >= tok->n_special) return NULL;
    *id = tok->special[i].id;
    return tok->special[i].text;
}

const char *tokenizer_text(const struct tokenizer *tok, uint32_t id, int64_t *n)
{
    if (id >= tok->vocab_size || !tok->token[id].at) return NULL;
    *n = tok->token[id].n;
    return tok->token[id].at;
}

static void put_id(struct id_list *out, uint32_t id)
{
    *id_list_reserve(out, 1) = id;
    out->n++;
}

/* Cuts a piece by a step and each part by the next; gaps between matches are parts too. */
static void cut_piece(struct tokenizer *tok, int step, const char *text, int64_t from, int64_t end,
                      struct id_list *out)
{
    if (step == tok->n_steps) {
        bpe_encode(tok->bpe, text + from, end - from, out);
        return;
    }
    while (from < end) {
        int64_t to = end;
        const int64_t at = pattern_find(&tok->step[step], tok->class, from, end, &to);
        if (at > from) cut_piece(tok, step + 1, text, from, at, out);
        if (at < end) cut_piece(tok, step + 1, text, at, to, out);
        from = at < end ? to : end;
    }
}

/* The first token of first .. last - 1 whose byte d is at least byte; their bytes before are
 * equal, and one that ends there comes before all. */
static int first_from(const struct added_tokens *added, int first, int last, int64_t d, int byte)
{
    while (first < last) {
        const int middle = first + (last - first) / 2;
        const struct added_token *t = &added->at[middle];
        if (t->n <= d || (unsigned char)t->text[d] < byte)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

/* The longest token with which the n bytes of text begin, or NULL. */
static const struct added_token *longest(const struct added_tokens *added, const char *text,
                                         int64_t n)
{
    const struct added_token *best = NULL;
    int first = 0, last = added->n;

    for (int64_t d = 0; d < n; d++) {
        const int byte = (unsigned char)text[d];
        first = first_from(added, first, last, d, byte);
        last = first_from(added, first, last, d, byte + 1);
        if (first == last) break;
        if (added->at[first].n == d + 1) best = &added->at[first];
    }
    return best;
}

/* The first place from at on where a token may begin; end if there is none. */
static int64_t next_beginning(const struct added_tokens *added, const char *text, int64_t at,
                              int64_t end)
{
    if (added->n_begins == 1) { /* mostly so: all begin with '<' */
        const char *found = memchr(text + at, added->at[0].text[0], (size_t)(end - at));
        return found ? found - text : end;
    }
    while (at < end && !added->begins[(unsigned char)text[at]]) at++;
    return at;
}

/* Cuts out the added tokens of a kind, and leaves what is between them to what comes next. */
static void cut_added(struct tokenizer *tok, int kind, const char *text, int64_t from, int64_t end,
                      struct id_list *out)
{
    const struct added_tokens *added = &tok->added[kind];

    for (int64_t at = from; from < end; at++) {
        at = next_beginning(added, text, at, end);
        const struct added_token *t = longest(added, text + at, end - at);
        if (!t && at < end) continue;
        if (at > from && kind == 0) cut_added(tok, 1, text, from, at, out);
        if (at > from && kind == 1) cut_piece(tok, 0, text, from, at, out);
        if (!t) break;
        put_id(out, t->id);
        from = at + t->n;
        at = from - 1;
    }
}

void tokenizer_encode(struct tokenizer *tok, const char *text, int64_t n, struct id_list *out)
{
    if (tok->is_bytes) {
        uint32_t *id = id_list_reserve(out, n);
        for (int64_t i = 0; i < n; i++) id[i] = (unsigned char)text[i];
        out->n += n;
        return;
    }
    if (n > tok->class_cap) {
        free(tok->class);
        tok->class = malloc((size_t)n);
        CHECK(tok->class, "no memory for a text of %ld bytes", (long)n);
        tok->class_cap = n;
    }
    alphabet_classify(&tok->alphabet, text, n, tok->class);
    cut_added(tok, 0, text, 0, n, out);
}
