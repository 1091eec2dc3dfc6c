/* Any bytes are text; a piece as long as the text takes no time to speak of, and a regular
 * expression that backtracks for ever is an error with its name and the place. */
// TEST ranks=1 timeout=60
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

int main(void)
{
    enum { N = 1 << 20, N_SHORT = 3000 };
    static char text[N];
    struct fault fault;
    struct tokenizer *tok = tokenizer_try_load(GOOD, 0, &fault);
    uint32_t x = 1;

    check_backtracking();
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
