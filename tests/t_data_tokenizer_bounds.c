/* Any bytes are text; a piece as long as the text takes no time to speak of, and a regular
 * expression that backtracks for ever is an error with its name and the place. What a possessive
 * repetition and a set in any case match is what tokenizers 0.23.3 matches. */
// TEST ranks=1 timeout=60
#include "data/pattern.h"
#include "data/tokenizer.h"
#include "test.h"

#include <jansson.h>
#include <string.h>

#define GOOD "tests/golden/tokenizer/deepseek.json"
#define BACKTRACKS "a*a*a*a*a*b|[^a]+|a"

static void check_back(struct tokenizer *tok, const char *text, int64_t n)
{
    struct id_list ids = {0};
    struct fault fault = {0};
    int64_t at = 0, bytes;

    EXPECT(tokenizer_try_encode(tok, text, n, &ids, &fault) == 0, "%s", fault.why);
    for (int64_t i = 0; i < ids.n && at <= n; i++, at += bytes) {
        const char *part = tokenizer_text(tok, ids.id[i], &bytes);
        if (at + bytes > n || memcmp(part, text + at, (size_t)bytes) != 0) break;
    }
    EXPECT(at == n, "text of %ld bytes comes back up to byte %ld", (long)n, (long)at);
    free(ids.id);
}

/* A regular expression that backtracks for ever ends with its name and the place. */
static void check_backtracking(void)
{
    char path[600], text[500];
    struct fault fault = {0};
    struct id_list ids = {0};
    json_t *root = json_load_file(GOOD, 0, NULL);

    snprintf(path, sizeof path, "%s/changed.json", test_tmpdir());
    json_t *step =
        json_array_get(json_object_get(json_object_get(root, "pre_tokenizer"), "pretokenizers"), 0);
    json_object_set_new(json_object_get(step, "pattern"), "Regex", json_string(BACKTRACKS));
    json_dump_file(root, path, 0);
    json_decref(root);
    struct tokenizer *tok = tokenizer_try_load(path, 0, &fault);
    memset(text, 'x', sizeof text);
    memset(text + 100, 'a', 400);
    check_back(tok, text, 110);
    EXPECT(tokenizer_try_encode(tok, text, sizeof text, &ids, &fault) == -1 &&
               fault.code == CODE_DATA && strstr(fault.why, "byte 1") == fault.why &&
               strstr(fault.why, BACKTRACKS),
           "backtracking: %s", fault.why);
    tokenizer_free(tok);
    free(ids.id);
}

static void check_matches(void)
{
    static const struct {
        const char *pattern, *text;
        int64_t at, to;
    } cases[] = {
        {"a*+a|b", "aaab", 3, 4},           {"a?+ab|c", "abaab", 2, 5},
        {"a++b|c", "aaabc", 0, 4},          {"[ab]?+b|c", "bbc", 0, 2},
        {"(?i:[@-\\[]+)", "`a@[z{", 1, 5},  {"(?i:[k-m]+)", "z\u212aKLl\u017f", 1, 7},
        {"(?i:[^k]+)", "k\u212aKxK", 5, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct alphabet alphabet;
        struct pattern *p = malloc(sizeof *p);
        struct fault fault = {0};
        uint8_t class[16];
        int64_t to = 0, steps = 1000;
        const int64_t n = (int64_t)strlen(cases[i].text);

        alphabet_init(&alphabet);
        EXPECT(p && pattern_try_compile(p, &alphabet, cases[i].pattern, &fault) == 0 &&
                   alphabet_try_finish(&alphabet, &fault) == 0,
               "%s", fault.why);
        pattern_finish(p);
        alphabet_classify(&alphabet, cases[i].text, n, class);
        const int64_t at = pattern_find(p, class, 0, n, &to, &steps);
        EXPECT(at == cases[i].at && to == cases[i].to, "%s in %s: %ld to %ld, expected %ld to %ld",
               cases[i].pattern, cases[i].text, (long)at, (long)to, (long)cases[i].at,
               (long)cases[i].to);
        pattern_free(p);
        alphabet_free(&alphabet);
        free(p);
    }
}

int main(void)
{
    enum { N = 1 << 20, N_SHORT = 3000 };
    static char text[N];
    struct fault fault;
    struct tokenizer *tok = tokenizer_try_load(GOOD, 0, &fault);
    uint32_t x = 1;

    check_backtracking();
    check_matches();
    for (int k = 0; k < 60; k++) {
        for (int i = 0; i < N_SHORT; i++) {
            x = x * 1664525 + 1013904223;
            const char any[] = {(char)(x >> 20), (char)(0x80 | x >> 26), "<|end|>\xf0"[x >> 29]};
            text[i] = any[k % 3];
        }
        check_back(tok, text, N_SHORT);
    }
    check_back(tok, text, 0);
    memset(text, 'a', N); /* one piece: n squared steps would take minutes */
    check_back(tok, text, N);
    tokenizer_free(tok);
    return test_end();
}
