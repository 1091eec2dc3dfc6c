/* tokenizer.c - encoding and decoding with a tokenizer; see tokenizer.h. Reading its file is in
 * tokenizer_load.c. */
#include "data/tokenizer_inside.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Known regular expressions take less than 20 steps a byte, and each is a few nanoseconds at most.
 */
enum { N_BYTES = 256, FREE_STEPS = 10000000, STEPS_A_BYTE = 1000 };
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
    unicode_nfc_free(tok->nfc);
    for (int i = 0; tok->step && i < TOKENIZER_MAX_STEPS; i++) pattern_free(&tok->step[i]);
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

static int too_many_steps(const struct tokenizer *tok, const struct pattern *p, int64_t from)
{
    return fault_set(tok->fault, CODE_DATA,
                     "byte %ld: the tokenizer's regular expression %s backtracks without end: over "
                     "%d steps and %d a byte of this text",
                     (long)(tok->place + from), p->text, FREE_STEPS, STEPS_A_BYTE);
}

/* Cuts a piece by a step and each part by the next; gaps between matches are parts too. */
static int cut_piece(struct tokenizer *tok, int step, const char *text, int64_t from, int64_t end)
{
    if (step == tok->n_steps) {
        bpe_encode(tok->bpe, text + from, end - from, tok->out);
        return 0;
    }
    const struct pattern *p = &tok->step[step];
    while (from < end) {
        int64_t to = end;
        const int64_t at = pattern_find(p, tok->class, from, end, &to, &tok->steps);
        if (at == PATTERN_TOO_LONG) return too_many_steps(tok, p, from);
        if (at > from && cut_piece(tok, step + 1, text, from, at) != 0) return -1;
        if (at < end && cut_piece(tok, step + 1, text, at, to) != 0) return -1;
        from = at < end ? to : end;
    }
    return 0;
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

static int cut_added(struct tokenizer *tok, int kind, const char *text, int64_t n);

/* What is between added tokens of the first kind. */
static int encode_between(struct tokenizer *tok, const char *text, int64_t n)
{
    if (tok->nfc) text = unicode_nfc(tok->nfc, text, &n);
    if (n > tok->class_cap) {
        free(tok->class);
        tok->class = malloc((size_t)n);
        CHECK(tok->class, "no memory for a text of %ld bytes", (long)n);
        tok->class_cap = n;
    }
    alphabet_classify(&tok->alphabet, text, n, tok->class);
    return cut_added(tok, 1, text, n);
}

/* Cuts out the added tokens of a kind, and leaves what is between them to what comes next. */
static int cut_added(struct tokenizer *tok, int kind, const char *text, int64_t n)
{
    const struct added_tokens *added = &tok->added[kind];
    int64_t from = 0;

    for (int64_t at = from; from < n; at++) {
        at = next_beginning(added, text, at, n);
        const struct added_token *t = longest(added, text + at, n - at);
        if (!t && at < n) continue;
        if (kind == 0) tok->place = from;
        if (at > from && (kind == 0 ? encode_between(tok, text + from, at - from)
                                    : cut_piece(tok, 0, text, from, at)) != 0)
            return -1;
        if (!t) break;
        *id_list_reserve(tok->out, 1) = t->id;
        tok->out->n++;
        from = at + t->n;
        at = from - 1;
    }
    return 0;
}

int tokenizer_try_encode(struct tokenizer *tok, const char *text, int64_t n, struct id_list *out,
                         struct fault *fault)
{
    if (tok->is_bytes) {
        uint32_t *id = id_list_reserve(out, n);
        for (int64_t i = 0; i < n; i++) id[i] = (unsigned char)text[i];
        out->n += n;
        return 0;
    }
    tok->steps = FREE_STEPS + STEPS_A_BYTE * n;
    tok->out = out;
    tok->fault = fault;
    return cut_added(tok, 0, text, n);
}
