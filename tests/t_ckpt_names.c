/* A manifest with a name that no message could keep in one line, and that would not come back from
 * the next manifest, is refused by whoever reads it. */
// TEST timeout=30
#include "ckpt/manifest.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

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
    return test_end();
}
