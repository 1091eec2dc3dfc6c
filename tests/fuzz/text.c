/*
 * text.c - fuzz target: a file of text, packed or not, plain or lines of JSON, as dsv3-tokenize
 * reads it; and NFC. Nothing is lost or read twice, and twice read is the same.
 */
#include "fuzz.h"

#include "data/corpus.h"
#include "data/unicode.h"
#include "data/unicode_nfc.h"

struct sums {
    int64_t n_bytes, n_documents;
    uint64_t hash;
};

/* Whether the whole file could be read. */
static bool read_all(struct corpus *corpus, const char *path, bool is_unicode, struct sums *sums)
{
    const char *bytes = NULL;
    int64_t n = 0;
    struct fault fault = {0};
    enum corpus_event event;

    *sums = (struct sums){0};
    while ((event = corpus_next(corpus, &bytes, &n, &fault)) < CORPUS_END) {
        if (event == CORPUS_DOCUMENT_END) {
            sums->n_documents++;
            continue;
        }
        EXPECT(n > 0, "%ld bytes", n);
        sums->n_bytes += n;
        for (int64_t i = 0; i < n; i++) sums->hash = sums->hash * 31 + (unsigned char)bytes[i];
        for (int64_t i = 0; is_unicode && i < n;) {
            int length;
            EXPECT(unicode_decode(bytes + i, n - i, &length) < UNICODE_CODE_POINTS, "byte %ld", i);
            i += length;
        }
    }
    EXPECT(event == CORPUS_END || (strstr(fault.why, path) && !strchr(fault.why, '\n')), "said %s",
           fault.why);
    return event == CORPUS_END;
}

static void check_nfc(struct unicode_nfc *nfc, const char *text, int64_t n)
{
    char *once = malloc((size_t)n * 3 + 1);
    int64_t n_once = n, n_twice;

    const char *made = unicode_nfc(nfc, text, &n_once);
    EXPECT(n_once <= 3 * n, "%ld bytes of %ld", n_once, n);
    memcpy(once, made, (size_t)n_once);
    n_twice = n_once;
    made = unicode_nfc(nfc, once, &n_twice);
    EXPECT(n_twice == n_once && !memcmp(once, made, (size_t)n_once), "form C of form C is another");
    free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const struct corpus_form forms[] = {{.separator = "--"},
                                               {.separator = "", .any_bytes = true},
                                               {.json_key = "text", .skip_bad_lines = true}};
    const char *path = fuzz_file("text", bytes, n);
    struct sums sums[2];

    for (int i = 0; i < 3; i++) {
        struct fault fault = {0};
        struct corpus *corpus =
            corpus_try_open((char *const[]){(char *)path}, 1, &forms[i], &fault);
        EXPECT(corpus, "%s", fault.why);
        const bool good = read_all(corpus, path, forms[i].json_key, &sums[0]);
        corpus_rewind(corpus);
        EXPECT(good == read_all(corpus, path, forms[i].json_key, &sums[1]), "another end");
        EXPECT(!memcmp(&sums[0], &sums[1], sizeof sums[0]), "something else was read again");
        corpus_close(corpus);
    }
    struct unicode_nfc *nfc = unicode_nfc_init();
    check_nfc(nfc, (const char *)bytes, (int64_t)n);
    unicode_nfc_free(nfc);
    return 0;
}
