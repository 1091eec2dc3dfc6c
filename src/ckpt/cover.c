/*
 * cover.c - see cover.h. A box is at most three rectangles of the tensor's rows and columns, and a
 * rectangle is its four corners: how often each place is covered is the sum of all signs of corners
 * above and left of it. So the boxes cover every place once if and only if their corners cancel
 * with those of the whole tensor, taken with the other sign.
 */
#include "ckpt/cover.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BOX_CORNERS = 12, TENSOR_CORNERS = 4 };

struct corner {
    int64_t row, col;
    int sign;
};

struct corners {
    size_t n;
    struct corner *at;
};

/* Rows [r0, r1), columns [c0, c1). */
static void add_rectangle(struct corners *c, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
                          int sign)
{
    if (r0 == r1) return;
    c->at[c->n++] = (struct corner){r0, c0, sign};
    c->at[c->n++] = (struct corner){r0, c1, -sign};
    c->at[c->n++] = (struct corner){r1, c0, -sign};
    c->at[c->n++] = (struct corner){r1, c1, sign};
}

/* Elements [first, end) of the columns [c0, c0 + width), counted row by row from row r0. */
static void add_range(struct corners *c, int64_t r0, int64_t c0, int64_t width, int64_t first,
                      int64_t end)
{
    const int64_t row = first / width, inside = first % width, last = end / width;
    if (last == row) {
        add_rectangle(c, r0 + row, r0 + row + 1, c0 + inside, c0 + end % width, 1);
        return;
    }
    const int64_t whole = row + (inside > 0);
    add_rectangle(c, r0 + row, r0 + whole, c0 + inside, c0 + width, 1);
    add_rectangle(c, r0 + whole, r0 + last, c0, c0 + width, 1);
    add_rectangle(c, r0 + last, r0 + last + (end % width > 0), c0, c0 + end % width, 1);
}

/* False: its runs are not those of rows. */
static bool add_box(struct corners *c, const struct ckpt_box *b, int64_t width)
{
    if (b->run == b->stride || b->first + b->count <= b->run) {
        const int64_t first = b->base + b->first;
        add_range(c, 0, 0, width, first, first + b->count);
        return true;
    }
    const int64_t col = b->base % width;
    if (b->stride != width || col + b->run > width) return false;
    add_range(c, b->base / width, col, b->run, b->first, b->first + b->count);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct corner *x = a, *y = b;
    if (x->row != y->row) return (x->row > y->row) - (x->row < y->row);
    return (x->col > y->col) - (x->col < y->col);
}

static bool cancel(struct corners *c)
{
    qsort(c->at, c->n, sizeof *c->at, by_place);
    int64_t sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        sum += c->at[i].sign;
        const bool last = i + 1 == c->n || by_place(&c->at[i], &c->at[i + 1]) != 0;
        if (last && sum != 0) return false;
    }
    return true;
}

int cover_try_check(const struct ckpt_tensor *t, const struct ckpt_box *box, int n,
                    const char *where, struct fault *fault)
{
    const int64_t width = t->n_dims == 2 ? t->dim[1] : t->n;
    if (n == 1) return 0; /* as many different elements as there are */
    struct corners c = {0};
    c.at = malloc(sizeof *c.at * ((size_t)n * BOX_CORNERS + TENSOR_CORNERS));
    if (!c.at) return fault_set(fault, CODE_IO, "%s: no memory to check %d boxes", where, n);
    add_rectangle(&c, 0, t->n / width, 0, width, -1);
    bool rows = true;
    for (int i = 0; i < n && rows; i++) rows = add_box(&c, &box[i], width);
    const bool exact = rows && cancel(&c);
    free(c.at);
    if (exact) return 0;
    return fault_set(fault, CODE_DATA, "%s: the boxes of %s %s", where, t->name,
                     rows ? "hold some elements twice and others not at all, expected each once"
                          : "have runs that are not those of its rows");
}
