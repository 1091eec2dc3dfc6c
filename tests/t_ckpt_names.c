/* A manifest with a name that no message could keep in one line, and that would not come back from
 * the next manifest, is refused by whoever reads it; one of format 2 is read. */
// TEST timeout=30
#include "ckpt/manifest.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static char *text_with(const char *tensor, const char *file)
{
    struct ckpt_file f = {.bytes = 4};
    struct ckpt_tensor t = {.dtype = DTYPE_F32, .n_dims = 1, .dim = {1}, .n = 1, .n_boxes = 1};
    struct ckpt_box b = {.run = 1, .stride = 1, .count = 1};
    const struct manifest m = {.version = "1",
                               .config = (char *)"a: 1\n",
                               .file = &f,
                               .tensor = &t,
                               .box = &b,
                               .n_files = 1,
                               .n_tensors = 1,
                               .n_boxes = 1};
    strcpy(t.name, tensor);
    strcpy(f.name, file);
    return manifest_to_text(&m);
}

static void check(const char *tensor, const char *file, const char *why)
{
    struct manifest m;
    struct fault fault = {.why = ""};
    char *text = text_with(tensor, file);
    const int bad = manifest_try_parse(&m, text, "here", &fault);
    EXPECT(bad == (*why ? -1 : 0) && !strcmp(fault.why, why), "%s in %s: %s", tensor, file,
           fault.why);
    manifest_free(&m);
    free(text);
}

/* The text of format 2, which had no sources. */
static void check_format_2(void)
{
    struct manifest m;
    struct fault fault = {.why = ""};
    char *text = text_with("a", "a.h5"), digits[17];
    char *sources = strstr(text, " \"mixed_from\""), *format = strstr(text, "checkpoint 3");
    EXPECT(sources && format, "not in %s", text);
    if (!sources || !format) return;
    const char *rest = strchr(sources, '\n') + 1;
    format[strlen("checkpoint ")] = '2';
    memmove(sources, rest, strlen(rest) + 1);
    char *hash = strpbrk(text, ":") + 3;
    memset(hash, '0', 16);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
    memcpy(hash, digits, 16);
    EXPECT(!manifest_try_parse(&m, text, "here", &fault) && m.state.n_sources == 0, "%s",
           fault.why);
    manifest_free(&m);
    free(text);
}

int main(void)
{
    /* what JSON spells in this way: a line break, a quote, a backslash, an umlaut */
    static const char *const odd[] = {"", "a\\nb", "\\\"a", "a\\\\", "\\u00fc"};
    check("a", "a.h5", "");
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        check(odd[i], "a.h5", "here: a tensor without a usable name");
        check("a", odd[i], "here: a file without a usable name");
    }
    check("a", "../a.h5", "here: a file without a usable name");
    check("a", "b/a.h5", "here: a file without a usable name");
    check_format_2();
    return test_end();
}
