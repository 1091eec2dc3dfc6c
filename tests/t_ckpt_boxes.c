/* Boxes are accepted when they hold each element of their tensor once, as counting them one by one
 * says: all ways in which ranks cut tensors, and the same with one number changed. */
// TEST timeout=30
#include "ckpt/cover.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BOXES = 64, MAX_N = 400 };

static struct ckpt_box box[MAX_BOXES];
static int n_boxes;

static int draw(int n)
{
    return rand() % n;
}

static void add(struct ckpt_box b)
{
    if (b.count > 0) box[n_boxes++] = b;
}

/* Rows as one piece, or tp pieces of columns, each cut in up to three. */
static void cut(const struct ckpt_tensor *t)
{
    const int64_t W = t->n_dims == 2 ? t->dim[1] : t->n, rows = t->n / W;
    const int tp = t->n_dims == 2 && W >= 4 ? 1 + draw(4) : 1;
    n_boxes = 0;
    for (int r = 0; r < tp; r++) {
        const int64_t c0 = W * r / tp, c1 = W * (r + 1) / tp, width = c1 - c0, all = width * rows;
        int64_t at[4] = {0, draw((int)all + 1), draw((int)all + 1), all};
        if (at[1] > at[2]) at[1] = at[2];
        for (int i = 0; i < 3; i++) {
            const int64_t first = at[i], count = at[i + 1] - at[i];
            if (tp == 1)
                add((struct ckpt_box){
                    .base = first, .run = count, .stride = count, .count = count});
            else
                add((struct ckpt_box){.base = first / width * W + c0,
                                      .first = first % width,
                                      .run = width,
                                      .stride = W,
                                      .count = count});
        }
    }
}

/* Whether every box lies inside; how often each element is held. */
static bool counted(const struct ckpt_tensor *t, int held[MAX_N])
{
    memset(held, 0, sizeof(int) * MAX_N);
    for (int i = 0; i < n_boxes; i++)
        for (int64_t j = 0; j < box[i].count; j++) {
            const int64_t k = box[i].first + j;
            const int64_t at = box[i].base + k / box[i].run * box[i].stride + k % box[i].run;
            if (at >= t->n) return false;
            held[at]++;
        }
    return true;
}

static void change(void)
{
    struct ckpt_box *a = &box[draw(n_boxes)], *b = &box[draw(n_boxes)];
    switch (draw(4)) {
    case 0: *a = *b; break;
    case 1: a->base += draw(2) ? 1 : -1; break;
    case 2: a->first = draw((int)a->run); break;
    default: a->count--, b->count++; break;
    }
}

/* As manifest.c has it before it asks. */
static bool is_plain(const struct ckpt_tensor *t)
{
    int64_t sum = 0;
    for (int i = 0; i < n_boxes; i++) {
        const struct ckpt_box *b = &box[i];
        if (b->base < 0 || b->count < 1 || b->count > t->n) return false;
        sum += b->count;
    }
    return sum == t->n;
}

/* A manifest with one half of its tensor twice, and then right. */
static void check_manifest(void)
{
    struct ckpt_box half[2] = {{.run = 4, .stride = 4, .count = 4},
                               {.run = 4, .stride = 4, .count = 4}};
    struct ckpt_tensor t = {
        .name = "model/x", .dtype = DTYPE_F32, .n_dims = 1, .dim = {8}, .n = 8, .n_boxes = 2};
    struct ckpt_file file = {.name = "tensors-00000.h5", .bytes = 32};
    struct manifest again,
        m = {.version = "test", .config = (char *)"", .n_files = 1, .n_tensors = 1};
    m.file = &file, m.tensor = &t, m.box = half;
    for (int right = 0; right < 2; right++) {
        struct fault fault = {0};
        half[1].base = right ? 4 : 0;
        char *text = manifest_to_text(&m);
        EXPECT(manifest_try_parse(&again, text, "here", &fault) == right - 1, "%s", fault.why);
        EXPECT(right || strstr(fault.why, "model/x hold some elements twice"), "%s", fault.why);
        manifest_free(&again);
        free(text);
    }
}

int main(void)
{
    int n_exact = 0, n_wrong = 0, held[MAX_N];
    srand(5);
    for (int trial = 0; trial < 20000; trial++) {
        struct ckpt_tensor t = {.name = "t", .n_dims = 1 + draw(2), .dim = {1 + draw(20), 1}};
        struct fault fault = {0};
        if (t.n_dims == 2) t.dim[1] = 1 + draw(20);
        t.n = t.dim[0] * t.dim[1];
        cut(&t);
        if (trial % 4) change();
        if (!is_plain(&t) || !counted(&t, held)) continue;
        bool exact = true;
        for (int64_t i = 0; i < t.n; i++) exact &= held[i] == 1;
        const bool good = !cover_try_check(&t, box, n_boxes, "here", &fault);
        EXPECT(good == exact, "trial %d: %d boxes of [%d, %d]: %s", trial, n_boxes, (int)t.dim[0],
               (int)t.dim[1], good ? "accepted" : fault.why);
        n_exact += exact;
        n_wrong += !exact;
    }
    EXPECT(n_exact > 5000 && n_wrong > 2000, "%d exact, %d not", n_exact, n_wrong);
    check_manifest();
    return test_end();
}
