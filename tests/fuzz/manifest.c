/*
 * manifest.c - fuzz target: a checkpoint's manifest.json, as it is and with its checksum made
 * right. What is accepted keeps its promises about ranges, and becomes the same text again.
 */
#include "fuzz.h"

#include "ckpt/manifest.h"
#include "config/setting.h"

#include <inttypes.h>
#include <xxhash.h>

enum { HASH_AT = 10, HASH_DIGITS = 16, MAX_COUNTED = 1 << 16 };

/* Each element is in one box. */
static void count_elements(const struct manifest *m, const struct ckpt_tensor *t)
{
    static char held[MAX_COUNTED];
    memset(held, 0, sizeof held);
    for (int i = 0; i < t->n_boxes; i++) {
        const struct ckpt_box *b = &m->box[t->first_box + i];
        for (int64_t j = b->first; j < b->first + b->count; j++)
            held[b->base + j / b->run * b->stride + j % b->run]++;
    }
    for (int64_t i = 0; i < t->n; i++) EXPECT(held[i] == 1, "element %" PRId64, i);
}

static void check_tensor(const struct manifest *m, const struct ckpt_tensor *t)
{
    int64_t n = 1, covered = 0;
    EXPECT(t->file >= 0 && t->file < m->n_files, "file %d", t->file);
    EXPECT(t->n_dims == 1 || t->n_dims == 2, "%d dimensions", t->n_dims);
    for (int d = 0; d < t->n_dims; d++) n *= t->dim[d];
    EXPECT(n == t->n && n > 0, "%" PRId64 " elements", t->n);
    const int64_t bytes = m->file[t->file].bytes;
    EXPECT(t->offset >= 0 && t->offset <= bytes - n * (int64_t)dtype_bytes(t->dtype),
           "offset %" PRId64, t->offset);
    EXPECT(t->first_box >= 0 && t->n_boxes > 0 && t->first_box <= m->n_boxes - t->n_boxes, "box %d",
           t->first_box);
    for (int i = 0; i < t->n_boxes; i++) {
        const struct ckpt_box *b = &m->box[t->first_box + i];
        EXPECT(&m->tensor[b->tensor] == t, "box of tensor %d", b->tensor);
        EXPECT(b->count > 0 && b->run > 0 && b->first >= 0 && b->first < b->run && b->base >= 0,
               "box of %" PRId64, b->count);
        const int64_t last = b->first + b->count - 1;
        EXPECT(b->base + last / b->run * b->stride + last % b->run < n, "ends behind %" PRId64, n);
        covered += b->count;
    }
    EXPECT(covered == n, "boxes of %" PRId64 " elements", covered);
    if (n <= MAX_COUNTED) count_elements(m, t);
}

static void read_manifest(const char *text)
{
    struct manifest m, again;
    struct fault fault = {0};
    const int bad = manifest_try_parse(&m, text, "here", &fault);
    EXPECT(!bad || (strstr(fault.why, "here") && !strchr(fault.why, '\n')), "said %s", fault.why);
    if (!bad) {
        for (int i = 0; i < m.n_tensors; i++) check_tensor(&m, &m.tensor[i]);
        for (struct setting s = {.rest = m.config}; setting_next(&s);)
            EXPECT(memchr(s.key, 0, sizeof s.key) && s.n_value >= 0, "%d bytes", s.n_value);
        char *first = manifest_to_text(&m);
        EXPECT(!manifest_try_parse(&again, first, "again", &fault), "%s\n%s", fault.why, first);
        char *second = manifest_to_text(&again);
        EXPECT(!strcmp(first, second), "%s\nbecame\n%s", first, second);
        free(first);
        free(second);
        manifest_free(&again);
    }
    manifest_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char *text = malloc(n + 1), digits[HASH_DIGITS + 1];
    memcpy(text, bytes, n);
    text[n] = '\0';
    read_manifest(text);
    n = strlen(text);
    if (n >= HASH_AT + HASH_DIGITS) {
        memset(text + HASH_AT, '0', HASH_DIGITS);
        snprintf(digits, sizeof digits, "%016" PRIx64, (uint64_t)XXH3_64bits(text, n));
        memcpy(text + HASH_AT, digits, HASH_DIGITS);
        read_manifest(text);
    }
    free(text);
    return 0;
}
