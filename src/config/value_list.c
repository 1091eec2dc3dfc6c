/* value_list.c - values that are lists: sources of data, stages of a schedule, ranges; see value.h.
 */
#include "config/value_read.h"

#include <math.h>
#include <string.h>

/* A plain text is a list of one. */
static int read_paths(const struct key *key, const struct node *node, struct pool *pool,
                      struct data_source *source, struct err_list *errs)
{
    const bool is_one = node->kind == NODE_SCALAR;
    const int n_errs = errs->n;

    if (!is_one && (node->kind != NODE_LIST || !node->first))
        return value_fault(errs, node, key->name, "a path or a list of paths");
    for (const struct node *item = is_one ? node : node->first; item; item = item->next) {
        if (source->n_paths == MAX_PATHS) {
            fault_add(errs, item->at, "%s: more than %d paths", key->name, MAX_PATHS);
            break;
        }
        if (!value_read_text(key, item, pool, &source->path[source->n_paths++]))
            value_fault(errs, item, key->name, "a path");
        if (is_one) break;
    }
    return errs->n == n_errs ? 0 : -1;
}

static const struct data_source plain_source = {.weight = 1, .eod_id = -1, .bos_id = -1};

/* The fields of {path: P, weight: W, ...}. */
static int read_source(const struct key *key, const struct node *map, struct pool *pool,
                       struct data_source *source, struct err_list *errs)
{
    static const char *const fields[] = {"path", "weight", "format", "eod_id", "bos_id"};
    enum { PATH, WEIGHT, FORMAT, EOD_ID, BOS_ID, N_FIELDS };
    const struct key weight = {.max = INFINITY, .flags = KEY_ABOVE_MIN}, id = {.max = INT32_MAX};
    const struct node *seen[N_FIELDS] = {NULL};
    const int n_errs = errs->n;
    int64_t number;
    int format = DATA_FORMAT_AUTO;

    *source = plain_source;
    for (const struct node *field = map->first; field; field = field->next) {
        int which = 0;
        while (which < N_FIELDS &&
               (field->kind != NODE_SCALAR || strcmp(field->text, fields[which])))
            which++;
        if (which == N_FIELDS || seen[which])
            value_fault(errs, field, key->name, "path, weight, format, eod_id, bos_id, once each");
        else
            seen[which] = field->value;
    }
    if (!seen[PATH])
        fault_add(errs, map->at, "%s: path is required", key->name);
    else
        read_paths(key, seen[PATH], pool, source, errs);
    if (seen[WEIGHT] && !value_read_number(&weight, seen[WEIGHT], &source->weight))
        value_fault(errs, seen[WEIGHT], key->name, "weight: a finite number above 0");
    if (seen[FORMAT] && !value_read_choice(value_formats, seen[FORMAT], &format))
        value_fault(errs, seen[FORMAT], key->name,
                    "format: one of auto, native, megatron, llmc, datatrove, npy, u16, u32");
    source->format = (enum data_format)format;
    for (int k = EOD_ID; k <= BOS_ID; k++) {
        int *to = k == EOD_ID ? &source->eod_id : &source->bos_id;
        if (seen[k] && !value_read_int(&id, seen[k], &number))
            value_fault(errs, seen[k], key->name,
                        k == EOD_ID ? "eod_id: a token id from 0 to 2147483647"
                                    : "bos_id: a token id from 0 to 2147483647");
        else if (seen[k])
            *to = (int)number;
    }
    return errs->n == n_errs ? 0 : -1;
}

/* A path or a list of them is one source; otherwise each item is one. */
int value_read_sources(const struct key *key, const struct node *node, struct pool *pool,
                       struct data_sources *to, struct err_list *errs)
{
    const int n_errs = errs->n;
    struct data_sources list = {.n = 1};
    const struct node *item = node->kind == NODE_MAP ? node : node->first;
    char expected[EXPECTED_BYTES];

    if (node->kind == NODE_LIST && !item) {
        list.n = 0;
    } else if (node->kind == NODE_MAP || (node->kind == NODE_LIST && item->kind == NODE_MAP)) {
        for (list.n = 0; item; item = node->kind == NODE_MAP ? NULL : item->next) {
            if (list.n == MAX_SOURCES) {
                fault_add(errs, item->at, "%s: more than %d sources", key->name, MAX_SOURCES);
                break;
            }
            if (item->kind != NODE_MAP)
                value_fault(errs, item, key->name, "a source {path: P, ...} like the first");
            else
                read_source(key, item, pool, &list.at[list.n++], errs);
        }
    } else if (node->kind == NODE_LIST || (node->kind == NODE_SCALAR && *node->text)) {
        list.at[0] = plain_source;
        read_paths(key, node, pool, &list.at[0], errs);
    } else {
        value_fault(errs, node, key->name, value_expected(key, expected));
    }
    *to = list;
    return errs->n == n_errs ? 0 : -1;
}

static const char *const shapes[] = {"hold", "linear", "cosine", NULL};

/* One {until, value, shape}; after is the until of the stage before. */
static void read_stage(const struct key *key, const struct node *map, int index, double after,
                       struct stage *stage, struct err_list *errs)
{
    static const char *const fields[] = {"until", "value", "shape"};
    const struct key until = {.max = INFINITY, .flags = KEY_ABOVE_MIN};
    char name[EXPECTED_BYTES], expected[EXPECTED_BYTES];
    const struct node *seen[3] = {NULL, NULL, NULL};
    snprintf(name, sizeof name, "%s[%d]", key->name, index);
    if (map->kind != NODE_MAP) {
        value_fault(errs, map, name, "{until: U, value: V, shape: hold | linear | cosine}");
        return;
    }
    for (const struct node *field = map->first; field; field = field->next) {
        int which = 0;
        while (which < 3 && (field->kind != NODE_SCALAR || strcmp(field->text, fields[which])))
            which++;
        if (which == 3 || seen[which])
            value_fault(errs, field, name, "until, value and shape, once each");
        else
            seen[which] = field->value;
    }
    if (!seen[0] || !seen[1]) fault_add(errs, map->at, "%s: until and value are required", name);
    if (seen[0] && !value_read_number(&until, seen[0], &stage->until)) {
        value_fault(errs, seen[0], name, "until: a finite number above 0");
    } else if (seen[0] && stage->until <= after) {
        snprintf(expected, sizeof expected, "until: more than %.15g of the stage before", after);
        value_fault(errs, seen[0], name, expected);
    }
    int64_t whole = 0;
    const bool good =
        !seen[1] || (key->flags & KEY_WHOLE ? value_read_int(key, seen[1], &whole)
                                            : value_read_number(key, seen[1], &stage->value));
    if (key->flags & KEY_WHOLE) stage->value = (double)whole;
    const struct key one = {.type = key->flags & KEY_WHOLE ? KEY_INT : KEY_NUMBER,
                            .min = key->min,
                            .max = key->max,
                            .flags = key->flags};
    if (!good) value_fault(errs, seen[1], name, value_expected(&one, expected));
    int shape = STAGE_HOLD;
    if (seen[2] && !value_read_choice(shapes, seen[2], &shape))
        value_fault(errs, seen[2], name, "shape: one of hold, linear, cosine");
    stage->shape = (enum stage_shape)shape;
}

int value_read_stages(const struct key *key, const struct node *node, struct stages *stages,
                      struct err_list *errs)
{
    char expected[EXPECTED_BYTES];
    const int n_errs = errs->n;
    struct stages list = {0};
    if (node->kind != NODE_LIST)
        return value_fault(errs, node, key->name, value_expected(key, expected));
    for (const struct node *item = node->first; item; item = item->next) {
        if (list.n == MAX_STAGES) {
            fault_add(errs, item->at, "%s: more than %d stages", key->name, MAX_STAGES);
            break;
        }
        read_stage(key, item, list.n, list.n ? list.at[list.n - 1].until : 0, &list.at[list.n],
                   errs);
        list.n++;
    }
    *stages = list;
    return errs->n == n_errs ? 0 : -1;
}

enum { MAX_LISTED = MAX_RANGES - MAX_ROLLBACKS }; /* a run adds some of its own */

/* Overlapping ones become one, so what is printed may be shorter than what was read. */
int value_read_ranges(const struct key *key, const struct node *node, struct ranges *ranges,
                      struct err_list *errs)
{
    char expected[EXPECTED_BYTES];
    const struct key whole = {.min = key->min, .max = key->max};
    const int n_errs = errs->n;
    int n = 0;
    struct ranges list = {0};
    if (node->kind != NODE_LIST)
        return value_fault(errs, node, key->name, value_expected(key, expected));
    for (const struct node *item = node->first; item; item = item->next) {
        const struct node *a = item->kind == NODE_LIST ? item->first : NULL,
                          *b = a ? a->next : NULL;
        int64_t first, end;
        if (++n > MAX_LISTED) {
            fault_add(errs, item->at, "%s: more than %d ranges", key->name, MAX_LISTED);
            break;
        }
        if (!b || b->next || !value_read_int(&whole, a, &first) ||
            !value_read_int(&whole, b, &end) || first >= end)
            value_fault(errs, item, key->name, "[first, end], two integers, the second larger");
        else
            ranges_add(&list, first, end);
    }
    *ranges = list;
    return errs->n == n_errs ? 0 : -1;
}
