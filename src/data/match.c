/* match.c - numbering the classes of characters, and matching patterns on them; see pattern.h. */
#include "data/pattern.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { NO_CLASS = -1, NO_MATCH = -1, CATEGORY_MASK = (1 << UNICODE_CATEGORY_BITS) - 1 };

void alphabet_init(struct alphabet *a)
{
    memset(a, 0, sizeof *a);
}

void alphabet_free(struct alphabet *a)
{
    mem_free(a->of);
    memset(a, 0, sizeof *a);
}

static bool set_has(const struct char_set *set, uint32_t c, uint32_t category)
{
    bool has = set->categories >> category & 1;
    for (int i = 0; i < set->n_ranges && !has; i++)
        has = set->range[i][0] <= c && c <= set->range[i][1];
    return has != set->negated;
}

/* The sets that hold a character, as bits. */
static uint64_t sets_of(const struct alphabet *a, uint32_t c, uint32_t category)
{
    uint64_t sets = 0;
    for (int s = 0; s < a->n_sets; s++)
        if (set_has(&a->set[s], c, category)) sets |= UINT64_C(1) << s;
    return sets;
}

static int class_of(struct alphabet *a, uint64_t sets)
{
    for (int i = 1; i < a->n_classes; i++)
        if (a->member[i] == sets) return i;
    if (a->n_classes == ALPHABET_CLASSES) return NO_CLASS;
    a->member[a->n_classes] = sets;
    return a->n_classes++;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The code points at which any set's answer may change, in order. New memory. */
static uint32_t *find_borders(const struct alphabet *a, int *n)
{
    const int most = n_unicode_runs + 2 * a->n_sets * CHAR_SET_MAX_RANGES + 1;
    uint32_t *border = mem_alloc((size_t)most * sizeof *border, "borders of character classes");

    *n = 0;
    for (int i = 0; i < n_unicode_runs; i++)
        border[(*n)++] = unicode_runs[i] >> UNICODE_CATEGORY_BITS;
    for (int s = 0; s < a->n_sets; s++)
        for (int i = 0; i < a->set[s].n_ranges; i++) {
            border[(*n)++] = a->set[s].range[i][0];
            border[(*n)++] = a->set[s].range[i][1] + 1;
        }
    border[(*n)++] = UNICODE_CODE_POINTS;
    qsort(border, (size_t)*n, sizeof *border, compare_numbers);
    return border;
}

int alphabet_try_finish(struct alphabet *a, struct fault *fault)
{
    int n_borders, run = 0, class = 0;
    uint32_t *border = find_borders(a, &n_borders);

    a->of = mem_alloc(UNICODE_CODE_POINTS, "character classes");
    a->member[0] = ~UINT64_C(0);
    a->n_classes = 1;
    for (int i = 0; i + 1 < n_borders && class != NO_CLASS; i++) {
        const uint32_t from = border[i], to = border[i + 1];
        while (run + 1 < n_unicode_runs && unicode_runs[run + 1] >> UNICODE_CATEGORY_BITS <= from)
            run++;
        if (from == to || from >= UNICODE_CODE_POINTS) continue;
        class = class_of(a, sets_of(a, from, unicode_runs[run] & CATEGORY_MASK));
        if (class != NO_CLASS) memset(a->of + from, class, to - from);
    }
    mem_free(border);
    const int invalid = class_of(a, sets_of(a, UNICODE_CODE_POINTS, UNICODE_CN));
    a->invalid = (uint8_t)invalid;
    if (class != NO_CLASS && invalid != NO_CLASS) return 0;
    return fault_set(fault, CODE_DATA,
                     "the regular expressions tell more than %d classes of characters apart",
                     ALPHABET_CLASSES - 1);
}

/* The nodes from which a match may begin with the class, as far as one character tells; found like
 * may_be_empty in pattern.c. */
static void find_beginnings(const struct pattern *p, int class, bool *begins)
{
    const uint64_t member = p->alphabet->member[class];
    bool changed = true;

    memset(begins, 0, PATTERN_MAX_NODES * sizeof *begins);
    while (changed) {
        changed = false;
        for (int i = 0; i < p->n_nodes; i++) {
            const struct node *node = &p->node[i];
            const bool is_set = node->kind == NODE_SET;
            const bool now = node->kind == NODE_END || (is_set && member >> node->set & 1) ||
                             ((!is_set || node->min == 0) && begins[node->next]) ||
                             (node->kind == NODE_SPLIT && begins[node->other]);
            changed = changed || now != begins[i];
            begins[i] = now;
        }
    }
}

void pattern_finish(struct pattern *p)
{
    bool begins[PATTERN_MAX_NODES];

    for (int class = 1; class < p->alphabet->n_classes; class ++) {
        find_beginnings(p, class, begins);
        for (int k = 0; k < p->n_alternatives; k++)
            if (begins[p->alternative[k]]) p->first[class] |= UINT32_C(1) << k;
    }
}

void pattern_free(struct pattern *p)
{
    free(p->text);
    p->text = NULL;
}

void alphabet_classify(const struct alphabet *a, const char *text, int64_t n, uint8_t *class)
{
    for (int64_t i = 0; i < n;) {
        int bytes;
        if ((signed char)text[i] >= 0) {
            class[i] = a->of[(unsigned char)text[i]];
            i++;
            continue;
        }
        const uint32_t c = unicode_decode(text + i, n - i, &bytes);
        class[i] = c == UNICODE_CODE_POINTS ? a->invalid : a->of[c];
        for (int k = 1; k < bytes; k++) class[i + k] = 0;
        i += bytes;
    }
}

/* The place behind the character at at. */
static int64_t step(const uint8_t *class, int64_t at, int64_t end)
{
    at++;
    while (at < end && class[at] == 0) at++;
    return at;
}

/* How far a SET reaches: *low after its least number of characters, *far after its most. */
static bool reach(const struct pattern *p, const struct node *node, const uint8_t *class,
                  int64_t at, int64_t end, int64_t *low, int64_t *far)
{
    const uint64_t *member = p->alphabet->member;
    int n = 0;

    for (; n < node->min; n++) {
        if (at == end || !(member[class[at]] >> node->set & 1)) return false;
        at = step(class, at, end);
    }
    *low = at;
    if (node->max == PATTERN_NO_LIMIT) /* the other bytes of a character are in every set */
        while (at < end && member[class[at]] >> node->set & 1) at++;
    else
        for (; n < node->max && at < end && member[class[at]] >> node->set & 1; n++)
            at = step(class, at, end);
    *far = at;
    if (node->possessive) *low = at;
    return true;
}

/* The end of the match that goes on from the node at at, NO_MATCH or PATTERN_TOO_LONG. Nested as
 * deep as the pattern has nodes, whatever the text. */
static int64_t match(const struct pattern *p, int i, const uint8_t *class, int64_t at, int64_t end,
                     int64_t *steps)
{
    int64_t low, far;

    for (;;) {
        const struct node *node = &p->node[i];
        i = node->next;
        if (--*steps < 0) return PATTERN_TOO_LONG;
        switch (node->kind) {
        case NODE_END: return at;
        case NODE_JOIN: break;
        case NODE_LOOK:
            if ((at < end && p->alphabet->member[class[at]] >> node->set & 1) == node->negated)
                return NO_MATCH;
            break;
        case NODE_SPLIT:
            far = match(p, node->next, class, at, end, steps);
            if (far != NO_MATCH) return far;
            i = node->other;
            break;
        case NODE_SET:
            if (!reach(p, node, class, at, end, &low, &far)) return NO_MATCH;
            *steps -= far - at;
            for (; far > low; far--) {
                if (far < end && class[far] == 0) continue;
                const int64_t to = match(p, node->next, class, far, end, steps);
                if (to != NO_MATCH) return to;
            }
            at = low;
            break;
        }
    }
}

int64_t pattern_find(const struct pattern *p, const uint8_t *class, int64_t from, int64_t end,
                     int64_t *to, int64_t *steps)
{
    for (; from < end; from++)
        for (uint32_t left = p->first[class[from]]; left; left &= left - 1) {
            *to = match(p, p->alternative[__builtin_ctz(left)], class, from, end, steps);
            if (*to != NO_MATCH) return *to < 0 ? PATTERN_TOO_LONG : from;
        }
    return end;
}
