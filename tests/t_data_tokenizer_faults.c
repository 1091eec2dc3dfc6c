/* What a tokenizer.json asks for that is not supported is refused by its name. */
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
    {"normalizer", "{\"type\":\"NFD\"}", "normalizer NFD is not supported"},
    {"normalizer",
     "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"NFKC\"}]}",
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
    {"model/vocab/A", "123456789", "the byte 0x41 has id 123456789"},
    {"model/merges/0", "\"A\"", "model.merges[0] is A, expected two tokens"},
    {"model/merges/0", "[\"A\",\"\"]", "model.merges[0] is a list"},
    {"model/merges/1", "\"A \\u00ff\\u00ff\"", "model.merges[1]: \u00ff\u00ff is not in"},
    {"model/merges/1", "\"\\u00ff A\"", "model.merges[1]: \u00ff\x41 is not in"},
    {"added_tokens/3/lstrip", "true", "added token <|fim|>.lstrip is true"},
    {"added_tokens/3/content", "\"\"", "added_tokens[3].content is"},
    {"added_tokens/3/id", "20", "<|fim|> has id 20, but tokenizers gives it 900, the first one"},
    {"added_tokens/3/id", "905", "<|fim|> has id 905, but tokenizers gives it 900"},
    {"added_tokens/1/id", "7",
     "<|end|> has id 7, but tokenizers gives it 1, its id in model.vocab"},
    {"added_tokens/3/content", "\"the\"", "the has id 900, but tokenizers gives it 463"},
    {"added_tokens/4/content", "\"<|fim|>\"", "added token <|fim|> comes twice"},
    {"added_tokens/3/single_word", "true", "added token <|fim|>.single_word is true"},
    {"added_tokens/3/rstrip", "true", "added token <|fim|>.rstrip is true"},
    {"added_tokens/3/color", "1", "added token <|fim|>.color is not supported"},
    {"pre_tokenizer", "null", "pre_tokenizer is null"},
    {"pre_tokenizer", "{\"type\":\"Whitespace\"}", "pre_tokenizer Whitespace is not supported"},
    {"pre_tokenizer/pretokenizers/3", "", "pre_tokenizer has no ByteLevel"},
    {"pre_tokenizer/pretokenizers/3/add_prefix_space", "true", "add_prefix_space is true"},
    {"pre_tokenizer/pretokenizers/0/behavior", "\"Removed\"", "behavior is Removed"},
    {"pre_tokenizer/pretokenizers/0/invert", "true", "invert is true"},
    {"pre_tokenizer/pretokenizers/0/pattern", "{\"String\":\" \"}", "pattern.String is not"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(a|b)+x\"",
     "a repeated or possessive group at byte 6"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"a*?\"", "a lazy or double"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"a{1,3}+\"", "a lazy or double"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(ab)?+c\"",
     "a repeated or possessive group"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(?i:[^e]+Ss)\"",
     "that are also one character"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(?i:[\\\\p{Lu}])\"", "a category in a set"},
    {"pre_tokenizer/pretokenizers/0/pattern/Regex", "\"(?i:\u00e9)\"", "beyond ASCII within (?i:"},
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

int main(void)
{
    check_refused();
    return test_end();
}
