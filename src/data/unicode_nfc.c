/* unicode_nfc.c - decompose, order, compose; see unicode_nfc.h. */
#include "data/unicode_nfc.h"

#include "base/err.h"
#include "base/mem.h"
#include "data/unicode.h"

#include <stdlib.h>
#include <string.h>

/* Hangul syllables are computed: leading consonant, vowel, perhaps trailing consonant. */
enum {
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11a7, /* one before the first */
    HANGUL_S = 0xac00,
    N_L = 19,
    N_V = 21,
    N_T = 28,
    N_S = N_L * N_V * N_T
};
/* Of a character, beside its combining class. */
enum {
    CLASS = 0xff,
    MAY_CHANGE = 0x100, /* text without such characters is in form C */
    DECOMPOSES = 0x200,
    COMPOSES_BACK = 0x400 /* with a character before it */
};

struct mark {
    uint32_t c;
    int class;
};

struct unicode_nfc {
    uint16_t property[UNICODE_CODE_POINTS];
    const struct unicode_pair **composed; /* [n_composed] by their two characters */
    int n_composed;
    struct mark *part, *sorted; /* [cap_part] what may still change each other */
    int64_t n_part, cap_part;
    char *out;
    int64_t n_out, cap_out;
};

static int compare_parts(const void *a, const void *b)
{
    const struct unicode_pair *x = *(const struct unicode_pair *const *)a,
                              *y = *(const struct unicode_pair *const *)b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->second > y->second) - (x->second < y->second);
}

static void set_properties(struct unicode_nfc *nfc)
{
    uint16_t *property = nfc->property;

    for (int i = 0; i < n_unicode_combining; i++) {
        const uint32_t from = unicode_combining[i] >> 8, class = unicode_combining[i] & CLASS;
        const uint32_t to =
            i + 1 < n_unicode_combining ? unicode_combining[i + 1] >> 8 : UNICODE_CODE_POINTS;
        for (uint32_t c = from; c < to && class; c++) property[c] = (uint16_t)(class | MAY_CHANGE);
    }
    for (int i = 0; i < n_unicode_pairs; i++) {
        const struct unicode_pair *p = &unicode_pairs[i];
        property[p->c] |= (uint16_t)(DECOMPOSES | (p->composes ? 0 : MAY_CHANGE));
        if (!p->composes) continue;
        property[p->second] |= COMPOSES_BACK | MAY_CHANGE;
        nfc->composed[nfc->n_composed++] = p;
    }
    for (int i = 0; i < N_V; i++) property[HANGUL_V + i] |= COMPOSES_BACK | MAY_CHANGE;
    for (int i = 1; i < N_T; i++) property[HANGUL_T + i] |= COMPOSES_BACK | MAY_CHANGE;
}

struct unicode_nfc *unicode_nfc_init(void)
{
    struct unicode_nfc *nfc = mem_alloc(sizeof *nfc, "normalizer");

    nfc->composed = mem_alloc((size_t)n_unicode_pairs * sizeof *nfc->composed, "compositions");
    set_properties(nfc);
    qsort(nfc->composed, (size_t)nfc->n_composed, sizeof *nfc->composed, compare_parts);
    return nfc;
}

void unicode_nfc_free(struct unicode_nfc *nfc)
{
    if (!nfc) return;
    free(nfc->part);
    free(nfc->sorted);
    free(nfc->out);
    mem_free(nfc->composed);
    mem_free(nfc);
}

static void put_bytes(struct unicode_nfc *nfc, const char *bytes, int64_t n)
{
    if (nfc->n_out + n > nfc->cap_out) {
        nfc->cap_out = 2 * (nfc->n_out + n);
        nfc->out = realloc(nfc->out, (size_t)nfc->cap_out);
        CHECK(nfc->out, "no memory for %ld bytes of normalized text", (long)nfc->cap_out);
    }
    memcpy(nfc->out + nfc->n_out, bytes, (size_t)n);
    nfc->n_out += n;
}

/* Marks of one run by their classes, equal ones in their order: counted, as a run may be long. */
static void sort_run(struct unicode_nfc *nfc, struct mark *run, int64_t n)
{
    int64_t before[CLASS + 2] = {0};

    for (int64_t i = 0; i < n; i++) before[run[i].class + 1]++;
    for (int k = 0; k <= CLASS; k++) before[k + 1] += before[k];
    for (int64_t i = 0; i < n; i++) nfc->sorted[before[run[i].class]++] = run[i];
    memcpy(run, nfc->sorted, (size_t)n * sizeof *run);
}

static void order_marks(struct unicode_nfc *nfc)
{
    struct mark *part = nfc->part;

    for (int64_t i = 0; i < nfc->n_part;) {
        const int64_t first = i;
        bool in_order = true;
        for (i++; i < nfc->n_part && part[first].class && part[i].class; i++)
            in_order = in_order && part[i - 1].class <= part[i].class;
        if (!in_order) sort_run(nfc, part + first, i - first);
    }
}

/* The character that the two make, or 0. */
static uint32_t compose_two(const struct unicode_nfc *nfc, uint32_t first, uint32_t second)
{
    const struct unicode_pair pair = {.first = first, .second = second}, *key = &pair;
    const uint32_t s = first - HANGUL_S;

    if (first - HANGUL_L < N_L && second - HANGUL_V < N_V)
        return HANGUL_S + ((first - HANGUL_L) * N_V + (second - HANGUL_V)) * N_T;
    if (s < N_S && s % N_T == 0 && second > HANGUL_T && second < HANGUL_T + N_T)
        return first + (second - HANGUL_T);
    if (!(nfc->property[second] & COMPOSES_BACK)) return 0;
    const struct unicode_pair **found =
        bsearch(&key, nfc->composed, (size_t)nfc->n_composed, sizeof *nfc->composed, compare_parts);
    return found ? (*found)->c : 0;
}

/* Composes with the last character of class 0 what no other mark of its class or above keeps from
 * it, and writes what is left. */
static void end_part(struct unicode_nfc *nfc)
{
    struct mark *part = nfc->part;
    int64_t starter = -1, n = 0;

    order_marks(nfc);
    for (int64_t i = 0; i < nfc->n_part; i++) {
        const struct mark m = part[i];
        if (starter >= 0 && (n == starter + 1 || part[n - 1].class < m.class)) {
            const uint32_t made = compose_two(nfc, part[starter].c, m.c);
            if (made) {
                part[starter].c = made;
                continue;
            }
        }
        if (m.class == 0) starter = n;
        part[n++] = m;
    }
    for (int64_t i = 0; i < n; i++) {
        char bytes[UNICODE_MAX_BYTES];
        put_bytes(nfc, bytes, unicode_encode(part[i].c, bytes));
    }
    nfc->n_part = 0;
}

static void add_mark(struct unicode_nfc *nfc, uint32_t c)
{
    const int property = nfc->property[c];

    if (!(property & (CLASS | COMPOSES_BACK))) end_part(nfc);
    if (nfc->n_part == nfc->cap_part) {
        const size_t cap = nfc->cap_part ? 2 * (size_t)nfc->cap_part : 64;
        nfc->part = realloc(nfc->part, cap * sizeof *nfc->part);
        nfc->sorted = realloc(nfc->sorted, cap * sizeof *nfc->sorted);
        CHECK(nfc->part && nfc->sorted, "no memory for %zu combining characters", cap);
        nfc->cap_part = (int64_t)cap;
    }
    nfc->part[nfc->n_part++] = (struct mark){c, property & CLASS};
}

static const struct unicode_pair *find_pair(uint32_t c)
{
    int first = 0, last = n_unicode_pairs - 1;
    while (first < last) {
        const int middle = first + (last - first) / 2;
        if (unicode_pairs[middle].c < c)
            first = middle + 1;
        else
            last = middle;
    }
    return &unicode_pairs[first];
}

static void decompose(struct unicode_nfc *nfc, uint32_t c)
{
    const uint32_t s = c - HANGUL_S;

    if (s < N_S) {
        add_mark(nfc, HANGUL_L + s / (N_V * N_T));
        add_mark(nfc, HANGUL_V + s / N_T % N_V);
        if (s % N_T) add_mark(nfc, HANGUL_T + s % N_T);
    } else if (nfc->property[c] & DECOMPOSES) {
        const struct unicode_pair *pair = find_pair(c);
        decompose(nfc, pair->first); /* at most four deep */
        if (pair->second) add_mark(nfc, pair->second);
    } else {
        add_mark(nfc, c);
    }
}

static bool may_change(const struct unicode_nfc *nfc, const char *text, int64_t n)
{
    for (int64_t i = 0; i < n;) {
        int bytes = 1;
        if ((signed char)text[i] < 0) {
            const uint32_t c = unicode_decode(text + i, n - i, &bytes);
            if (c < UNICODE_CODE_POINTS && nfc->property[c] & MAY_CHANGE) return true;
        }
        i += bytes;
    }
    return false;
}

const char *unicode_nfc(struct unicode_nfc *nfc, const char *text, int64_t *n)
{
    if (!may_change(nfc, text, *n)) return text;
    nfc->n_out = 0;
    for (int64_t i = 0; i < *n;) {
        int bytes;
        const uint32_t c = unicode_decode(text + i, *n - i, &bytes);
        if (c < UNICODE_CODE_POINTS) {
            decompose(nfc, c);
        } else {
            end_part(nfc);
            put_bytes(nfc, text + i, 1);
        }
        i += bytes;
    }
    end_part(nfc);
    *n = nfc->n_out;
    return nfc->out;
}
