/* value.c - typed values; see value.h. Printing is in value_print.c. */
#include "config/value.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER_TEXT = 64 };
#define MAX_EXACT 9007199254740992.0 /* 2^53 */

struct number {
    double x;
    int64_t i; /* when whole */
    bool whole;
};

/* Copies a run of digits with single underscores between them; the end of it, or NULL. */
static const char *copy_digits(const char *s, char **out)
{
    if (!isdigit((unsigned char)*s)) return NULL;
    for (;; s++) {
        if (*s == '_' && isdigit((unsigned char)s[1])) continue;
        if (!isdigit((unsigned char)*s)) return s;
        *(*out)++ = *s;
    }
}

/* [+-] digits [. digits] [e [+-] digits]; no leading zeros, which elsewhere mean octal. */
static bool number_read(struct number *num, const char *s)
{
    char text[MAX_NUMBER_TEXT + 1], *out = text;
    bool plain_int = true;
    if (strlen(s) > MAX_NUMBER_TEXT) return false;
    if (*s == '-' || *s == '+') *out++ = *s++;
    if (s[0] == '0' && (isdigit((unsigned char)s[1]) || s[1] == '_')) return false;
    if (!(s = copy_digits(s, &out))) return false;
    if (*s == '.') {
        plain_int = false;
        *out++ = *s++;
        if (!(s = copy_digits(s, &out))) return false;
    }
    if (*s == 'e' || *s == 'E') {
        plain_int = false;
        *out++ = *s++;
        if (*s == '-' || *s == '+') *out++ = *s++;
        if (!(s = copy_digits(s, &out))) return false;
    }
    if (*s) return false;
    *out = '\0';
    errno = 0;
    num->x = strtod(text, NULL);
    if (!isfinite(num->x)) return false;
    num->whole = floor(num->x) == num->x && fabs(num->x) <= MAX_EXACT;
    if (plain_int && num->whole)
        num->i = strtoll(text, NULL, 10);
    else if (num->whole)
        num->i = (int64_t)num->x;
    return true;
}

static bool in_range(const struct key *key, double x)
{
    if (x < key->min || (x == key->min && key->flags & KEY_ABOVE_MIN)) return false;
    return x < key->max || (x == key->max && !(key->flags & KEY_BELOW_MAX));
}

static bool node_is_plain(const struct node *node)
{
    return node->kind == NODE_SCALAR && node->plain;
}

static bool node_number(struct number *num, const struct node *node)
{
    return node_is_plain(node) && number_read(num, node->text);
}

static bool read_int(const struct key *key, const struct node *node, int64_t *value)
{
    struct number num;
    if (key->flags & KEY_NULLABLE && node_is_null(node)) {
        *value = 0;
        return true;
    }
    if (!node_number(&num, node) || !num.whole || !in_range(key, num.x)) return false;
    *value = num.i;
    return true;
}

static bool read_number(const struct key *key, const struct node *node, double *value)
{
    struct number num;
    if (!node_number(&num, node) || !in_range(key, num.x)) return false;
    *value = num.x == 0 ? 0 : num.x; /* -0 prints differently */
    return true;
}

static bool read_bool(const struct node *node, bool *value)
{
    if (!node_is_plain(node)) return false;
    *value = !strcmp(node->text, "true");
    return *value || !strcmp(node->text, "false");
}

static bool read_choice(const char *const *choices, const struct node *node, int *value)
{
    if (node->kind != NODE_SCALAR) return false;
    for (int i = 0; choices[i]; i++)
        if (!strcmp(choices[i], node->text)) {
            *value = i;
            return true;
        }
    return false;
}

static bool read_text(const struct key *key, const struct node *node, struct pool *pool,
                      const char **value)
{
    if (node->kind != NODE_SCALAR || node_is_null(node)) return false;
    if (!*node->text && !(key->flags & KEY_EMPTY)) return false;
    for (const char *c = node->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) return false;
    *value = pool_text(pool, node->text, strlen(node->text));
    return true;
}

static bool read_fixed(const struct key *key, const struct node *node)
{
    struct number have, want;
    if (node->kind != NODE_SCALAR) return false;
    if (number_read(&want, key->preset)) return node_number(&have, node) && have.x == want.x;
    return !strcmp(node->text, key->preset) && (node->plain || !strcmp(key->preset, "silu"));
}

/* Adds one fault about a value; a refused node has had its own. */
static int fault_value(struct err_list *errs, const struct node *node, const char *name,
                       const char *expected)
{
    char found[NODE_TEXT_BYTES];
    if (node->kind != NODE_REFUSED)
        fault_add(errs, node->at, "%s: found %s, expected %s", name, node_found(node, found),
                  expected);
    return -1;
}

/* A plain text is a list of one. */
static int read_paths(const struct key *key, const struct node *node, struct pool *pool,
                      struct path_list *list, struct err_list *errs)
{
    char expected[EXPECTED_BYTES];
    const int n_errs = errs->n;
    struct path_list paths = {0};
    if (node->kind == NODE_SCALAR && !node_is_null(node)) {
        paths.n = 1;
        if (!read_text(key, node, pool, &paths.at[0]))
            return fault_value(errs, node, key->name, value_expected(key, expected));
        *list = paths;
        return 0;
    }
    if (node->kind != NODE_LIST)
        return fault_value(errs, node, key->name, value_expected(key, expected));
    for (const struct node *item = node->first; item; item = item->next) {
        if (paths.n == MAX_PATHS) {
            fault_add(errs, item->at, "%s: more than %d paths", key->name, MAX_PATHS);
            break;
        }
        if (!read_text(key, item, pool, &paths.at[paths.n++]))
            fault_value(errs, item, key->name, "a path");
    }
    *list = paths;
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
        fault_value(errs, map, name, "{until: U, value: V, shape: hold | linear | cosine}");
        return;
    }
    for (const struct node *field = map->first; field; field = field->next) {
        int which = 0;
        while (which < 3 && (field->kind != NODE_SCALAR || strcmp(field->text, fields[which])))
            which++;
        if (which == 3 || seen[which])
            fault_value(errs, field, name, "until, value and shape, once each");
        else
            seen[which] = field->value;
    }
    if (!seen[0] || !seen[1]) fault_add(errs, map->at, "%s: until and value are required", name);
    if (seen[0] && !read_number(&until, seen[0], &stage->until)) {
        fault_value(errs, seen[0], name, "until: a number above 0");
    } else if (seen[0] && stage->until <= after) {
        fault_value(errs, seen[0], name, "until: more than that of the stage before");
    }
    int64_t whole = 0;
    const bool good =
        !seen[1] || (key->flags & KEY_WHOLE ? read_int(key, seen[1], &whole)
                                            : read_number(key, seen[1], &stage->value));
    if (key->flags & KEY_WHOLE) stage->value = (double)whole;
    const struct key one = {.type = key->flags & KEY_WHOLE ? KEY_INT : KEY_NUMBER,
                            .min = key->min,
                            .max = key->max,
                            .flags = key->flags};
    if (!good) fault_value(errs, seen[1], name, value_expected(&one, expected));
    int shape = STAGE_HOLD;
    if (seen[2] && !read_choice(shapes, seen[2], &shape))
        fault_value(errs, seen[2], name, "shape: one of hold, linear, cosine");
    stage->shape = (enum stage_shape)shape;
}

static int read_stages(const struct key *key, const struct node *node, struct stages *stages,
                       struct err_list *errs)
{
    char expected[EXPECTED_BYTES];
    const int n_errs = errs->n;
    struct stages list = {0};
    if (node->kind != NODE_LIST)
        return fault_value(errs, node, key->name, value_expected(key, expected));
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

int value_try_set(struct config *cfg, const struct key *key, const struct node *node,
                  struct pool *pool, struct err_list *errs)
{
    void *field = (char *)cfg + key->offset;
    char expected[EXPECTED_BYTES];
    int64_t i = 0;
    int choice = 0;
    bool good = false;
    switch (key->type) {
    case KEY_INT:
        if ((good = read_int(key, node, &i))) *(int *)field = (int)i;
        break;
    case KEY_INT64:
        if ((good = read_int(key, node, &i))) *(int64_t *)field = i;
        break;
    case KEY_SAME:
        if ((good = read_int(key, node, &i))) cfg->source->n_key_value_heads = (int)i;
        break;
    case KEY_NUMBER: good = read_number(key, node, field); break;
    case KEY_BOOL: good = read_bool(node, field); break;
    case KEY_CHOICE:
        if ((good = read_choice(key->choices, node, &choice))) *(int *)field = choice;
        break;
    case KEY_TEXT: good = read_text(key, node, pool, field); break;
    case KEY_FIXED: good = read_fixed(key, node); break;
    case KEY_PATHS: return read_paths(key, node, pool, field, errs);
    case KEY_STAGES: return read_stages(key, node, field, errs);
    }
    if (good) return 0;
    return fault_value(errs, node, key->name, value_expected(key, expected));
}
