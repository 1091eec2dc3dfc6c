/*
 * tokenizer.c - fuzz target: a tokenizer.json, and text encoded with it. The ids of a text are the
 * text again, unless NFC is asked for; text that backtracks too long is an error.
 */
#include "fuzz.h"

#include "data/tokenizer_inside.h"

static void encode(struct tokenizer *tok, const char *text, int64_t n)
{
    struct id_list ids = {0};
    struct fault fault = {0};
    int64_t at = 0;
    const int bad = tokenizer_try_encode(tok, text, n, &ids, &fault);
    EXPECT(!bad || strstr(fault.why, "backtracks"), "said %s", fault.why);
    for (int64_t i = 0; i < ids.n; i++) {
        int64_t n_piece;
        const char *piece = tokenizer_text(tok, ids.id[i], &n_piece);
        EXPECT(piece &&
                   (tok->nfc || (n_piece <= n - at && !memcmp(text + at, piece, (size_t)n_piece))),
               "id %u at byte %ld of %ld", ids.id[i], at, n);
        at += n_piece;
    }
    EXPECT(at == n || bad || tok->nfc, "%ld bytes of %ld", at, n);
    free(ids.id);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char text[] =
        "The sun rises, 1234567 times:\n\n  \tit's \xc3\xa9\xe4\xb8\xad\xff"
        "e\xcc\x81\xcc\xa3\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab\xe0\xa4\xa8\xe0\xa4\xbc\xcc\x81";
    const char *path = fuzz_file("tokenizer.json", bytes, n);
    static const int64_t most[] = {0, 260};
    for (int i = 0; i < 2; i++) {
        struct fault fault = {0};
        struct tokenizer *tok = tokenizer_try_load(path, most[i], &fault);
        EXPECT(tok || (strstr(fault.why, fuzz_dir) && !strchr(fault.why, '\n')), "said %s",
               fault.why);
        if (!tok) continue;
        encode(tok, text, sizeof text - 1);
        encode(tok, (const char *)bytes, n < 2000 ? (int64_t)n : 2000);
        tokenizer_free(tok);
    }
    return 0;
}
