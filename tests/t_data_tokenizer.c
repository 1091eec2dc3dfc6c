/* Ids are those of PyPI's tokenizers, and the text comes back from them. The recorded ids are in
 * tests/golden/tokenizer; those of DeepSeek-V3's file are compared where that file is. */
// TEST ranks=1 timeout=60
#include "data/tokenizer.h"
#include "test.h"

#include <string.h>

#define DIR "tests/golden/tokenizer/"
#define REAL "../shared/data/deepseek_v3_tokenizer.json" /* or $DSV3_DEEPSEEK_V3_TOKENIZER */

static char *read_file(const char *path, int64_t *n)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);

    CHECK(file && text, "%s: cannot read (tests run in the repository's root)", path);
    *n = (int64_t)fread(text, 1, (1 << 20) - 1, file);
    text[*n] = '\0';
    fclose(file);
    return text;
}

static void check_decoded(const struct tokenizer *tok, const struct id_list *ids, const char *text,
                          int64_t n, const char *what)
{
    int64_t at = 0, bytes = 0;

    for (int64_t i = 0; i < ids->n; i++, at += bytes) {
        const char *part = tokenizer_text(tok, ids->id[i], &bytes);
        if (part && at + bytes <= n && memcmp(part, text + at, (size_t)bytes) == 0) continue;
        EXPECT(false, "%s: id %u, number %ld, is not the text at byte %ld", what, ids->id[i],
               (long)i, (long)at);
        return;
    }
    EXPECT(at == n, "%s: %ld bytes come back, expected %ld", what, (long)at, (long)n);
}

static void check_text(struct tokenizer *tok, const char *name, const char *which)
{
    char path[256], what[128];
    int64_t n, n_golden;
    struct id_list ids = {0};
    struct fault fault = {0};

    snprintf(what, sizeof what, "%s on %s", name, which);
    snprintf(path, sizeof path, DIR "%s.txt", which);
    char *text = read_file(path, &n);
    snprintf(path, sizeof path, DIR "%s.%s.ids.txt", name, which);
    char *golden = read_file(path, &n_golden), *at = golden, *end;

    EXPECT(tokenizer_try_encode(tok, text, n, &ids, &fault) == 0, "%s: %s", what, fault.why);
    int64_t i = 0;
    for (long id; id = strtol(at, &end, 10), end != at; at = end, i++) {
        if (i < ids.n && ids.id[i] == id) continue;
        EXPECT(false, "%s: id %ld is %ld, expected %ld", what, (long)i,
               i < ids.n ? (long)ids.id[i] : -1, id);
        break;
    }
    EXPECT(i == ids.n, "%s: %ld ids, expected %ld", what, (long)ids.n, (long)i);
    if (strcmp(name, "qwen") != 0) check_decoded(tok, &ids, text, n, what); /* NFC is kept */
    free(ids.id);
    free(golden);
    free(text);
}

static struct tokenizer *load(const char *path, int64_t max_vocab)
{
    struct fault fault = {0};
    struct tokenizer *tok = tokenizer_try_load(path, max_vocab, &fault);
    EXPECT(tok, "%s", fault.why);
    return tok;
}

/* name: of the recorded ids. */
static void check_tokenizer(const char *path, int64_t max_vocab, const char *name, int64_t vocab)
{
    static const char *const texts[] = {"english", "code", "mixed", "marks"};
    struct tokenizer *tok = load(path, max_vocab);

    if (!tok) return;
    EXPECT(tokenizer_vocab_size(tok) == vocab, "%s: %ld ids, expected %ld", name,
           (long)tokenizer_vocab_size(tok), (long)vocab);
    for (int i = 0; i < 4; i++) check_text(tok, name, texts[i]);
    tokenizer_free(tok);
}

/* The hash is of what a tokenizer does: equal for the two ways to write merges, not for others. */
static void check_hash(void)
{
    struct tokenizer *whole = load(DIR "deepseek.json", 0), *cut = load(DIR "deepseek.json", 899),
                     *other = load(DIR "cased.json", 0), *same = load(DIR "deepseek.json", 5000);
    EXPECT(tokenizer_hash(whole) == tokenizer_hash(same), "max_vocab beyond all ids: other hash");
    EXPECT(tokenizer_hash(whole) != tokenizer_hash(cut), "max_vocab 899: the same hash");
    EXPECT(tokenizer_hash(whole) != tokenizer_hash(other), "cased.json: the same hash");
    EXPECT(tokenizer_find(whole, "<|end|>") == 1 && tokenizer_find(whole, "<|end") >= 900 &&
               tokenizer_find(whole, "end") == -1 && tokenizer_find(cut, "<|end") == -1,
           "added tokens are not found by their text");
    tokenizer_free(whole);
    tokenizer_free(cut);
    tokenizer_free(other);
    tokenizer_free(same);
}

int main(void)
{
    const char *given = getenv("DSV3_DEEPSEEK_V3_TOKENIZER"), *real = given ? given : REAL;

    check_tokenizer(DIR "deepseek.json", 0, "deepseek", 904);
    check_tokenizer(DIR "gpt2.json", 0, "gpt2", 504);
    check_tokenizer(DIR "cased.json", 0, "cased", 704);
    check_tokenizer(DIR "nano.json", 0, "nano", 404);
    check_tokenizer(DIR "qwen.json", 0, "qwen", 404);
    check_tokenizer(DIR "deepseek.json", 400, "deepseek-400", 400);
    check_hash();
    if (access(real, R_OK) != 0) {
        printf("skipped: %s is not here\n", real);
    } else {
        check_tokenizer(real, 0, "deepseek-v3", 128815);
        check_tokenizer(real, 8192, "deepseek-v3-8192", 8192);
    }
    return test_end();
}
