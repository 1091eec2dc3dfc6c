/* What a tokenizer.json asks for that is not supported is refused by its name; any bytes are text;
 * a piece as long as the text takes no time to speak of. */
// TEST ranks=1 timeout=60
#include "data/tokenizer.h"
#include "test.h"

#include <jansson.h>
#include <string.h>

#define GOOD "tests/golden/tokenizer/deepseek.json"

/* What to change in a good file: the value at a path, "" deletes it; and what the message says. */
static const struct {
    const char *path, *value, *says;
} cases[] = {
    {"normalizer", "{\"type\":\"NFC\"}", "normalizer NFC is not supported"},
    {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"}]}",
     "normalizer NFKC is not supported"},
    {"truncation", "{\"max_length\":5}", "the file.truncation is an object, expected none"},
    {"decoder", "{\"type\":\"Metaspace\"}", "decoder Metaspace is not supported"},
    {"extra", "1", "the file.extra is not supported"},
    {"model", "", "model is nothing"},
    {"model/type", "\"Unigram\"", "model.type is Unigram, expected BPE"},
    {"model/dropout", "0.1", "model.dropout is a number, expected none"},
    {"model/byte_fallback", "true", "model.byte_fallback is true"},
    {"model/end_of_word_suffix", "\"</w>\"", "model.end_of_word_suffix is </w>"},
    {"model/shift", "1", "model.shift is not supported"},
    {"model/vocab", "[]", "model.vocab is a list"},
    {"model/vocab/A", "", "model.vocab lacks A, the byte 0x41"},
    {"model/vocab/A", "\"x\"", "the id of A is no number"},
    {"model/vocab/A", "-1", "the id of A is -1"},
    {"model/vocab/A", "5", "two tokens have id 5"},
    {"model/vocab/A", "1e9", "the id of A is no number"},
    {"model/vocab/A", "123456789", "the id of A is 123456789"},
    {"model/merges/0", "\"A\"", "model.merges[0] is A, expected two tokens"},
    {"model/merges/0", "[\"A\",\"\"]", "model.merges[0] is a list"},
    {"model/merges/1", "\"A \\u00ff\\u00ff\"", "model.merges[1]: \u00ff\u00ff is not in"},
    {"model/merges/1", "\"\\u00ff A\"", "model.merges[1]: \u00ff\x41 is not in"},
    {"added_tokens/3/lstrip", "true", "added token <|fim|>.lstrip is true"},
    {"added_tokens/3/content", "\"\"", "added_tokens[3].content is"},
    {"added_tokens/3/id", "20", "added token <|fim|> has id 20"},
    {"added_tokens/3/color", "1", "added token <|fim|>.color is not supported"},
    {"pre_tokenizer", "null", "pre_tokenizer is null"},
    {"pre_tokenizer", "{\"type\":\"Whitespace\"}", "pre_tokenizer Whitespace is not supported"},
    {"pre_tokenizer/pretokenizers/3", "", "pre_tokenizer has no ByteLevel"},
    {"pre_tokenizer/pretokenizers/3/add_prefix_space", "true", "add_prefix_space is true"},
    {"pre_tokenizer/pretokenizers/0/behavior", "\"Removed\"", "behavior is Removed"},
    {"pre_tokenizer/pretokenizers/0/invert", "true", "invert is true"},
    {"pre_tokenizer/pretokenizers/0/pattern", "{\"String\":\" \"}", "pattern.String is not"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(a|b)+x\"", "a repeated group at byte 6"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"a*?\"", "a lazy, possessive or double"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(?<=a)b\"", "a group of this kind"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"\\\\p{Greek}\"", "no general category"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"\\\\w+\"", "an escape that is not"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"a*\"", "a match of no characters"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(a|b\"", "a group that is not closed"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"[a-\"", "unexpected end"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"^a\"", "a character that needs"},
};

static void change(json_t *at, const char *path, const char *value)
{
    const size_t n = strcspn(path, "/");
    char key[64];

    snprintf(key, sizeof key, "%.*s", (int)n, path);
    json_t *next =
        json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    if (path[n] == '/') {
        change(next, path + n + 1, value);
        return;
    }
    json_t *made = *value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    EXPECT(made || !*value, "%s: bad value %s", path, value);
    if (json_is_array(at) && made) json_array_set_new(at, (size_t)atoi(key), made);
    if (json_is_array(at) && !made) json_array_remove(at, (size_t)atoi(key));
    if (json_is_object(at) && made) json_object_set_new(at, key, made);
    if (json_is_object(at) && !made) json_object_del(at, key);
}

static void expect_refused(const char *path, int64_t max_vocab, const char *says,
                           enum exit_code code)
{
    struct fault fault = {0};
    struct tokenizer *tok = tokenizer_try_load(path, max_vocab, &fault);

    EXPECT(!tok && fault.code == code && strstr(fault.why, says) && strstr(fault.why, path),
           "expected %d with '%s', found %d: %s", code, says, fault.code, fault.why);
    tokenizer_free(tok);
}

static void check_refused(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/changed.json", test_tmpdir());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root = json_load_file(GOOD, 0, NULL);
        change(root, cases[i].path, cases[i].value);
        json_dump_file(root, path, 0);
        json_decref(root);
        expect_refused(path, 0, cases[i].says, CODE_DATA);
    }
    expect_refused(GOOD, 100, "not below the 100 that are kept", CODE_DATA);
    expect_refused("tests/golden/tokenizer/code.txt", 0, "line 1, byte ", CODE_DATA);
    expect_refused("none.json", 0, "No such file", CODE_NO_INPUT);
    expect_refused("tests", 0, "not a regular file", CODE_NO_INPUT);
}

static void check_back(struct tokenizer *tok, const char *text, int64_t n)
{
    struct id_list ids = {0};
    int64_t at = 0, bytes;

    tokenizer_encode(tok, text, n, &ids);
    for (int64_t i = 0; i < ids.n && at <= n; i++, at += bytes) {
        const char *part = tokenizer_text(tok, ids.id[i], &bytes);
        if (at + bytes > n || memcmp(part, text + at, (size_t)bytes) != 0) break;
    }
    EXPECT(at == n, "text of %ld bytes comes back up to byte %ld", (long)n, (long)at);
    free(ids.id);
}

int main(void)
{
    enum { N = 1 << 20, N_SHORT = 3000 };
    static char text[N];
    struct fault fault;
    struct tokenizer *tok = tokenizer_try_load(GOOD, 0, &fault);
    uint32_t x = 1;

    check_refused();
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
