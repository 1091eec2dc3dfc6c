/* value.c - typed values; see value.h. Lists are in value_list.c, printing in value_print.c. */
#include "config/value_read.h"

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

/* As in YAML's core schema, [+-] (digits [. [digits]] | . digits) [e [+-] digits], but without
 * leading zeros, which elsewhere mean octal. */
static bool number_read(struct number *num, const char *s)
{
    char text[MAX_NUMBER_TEXT + 1], *out = text;
    bool plain_int = true;
    if (strlen(s) > MAX_NUMBER_TEXT) return false;
    if (*s == '-' || *s == '+') *out++ = *s++;
    if (s[0] == '0' && (isdigit((unsigned char)s[1]) || s[1] == '_')) return false;
    const bool leading_dot = *s == '.';
    if (!leading_dot && !(s = copy_digits(s, &out))) return false;
    if (*s == '.') {
        plain_int = false;
        *out++ = *s++;
        if (leading_dot || isdigit((unsigned char)*s)) s = copy_digits(s, &out);
        if (!s) return false;
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

bool value_read_int(const struct key *key, const struct node *node, int64_t *value)
{
    struct number num;
    if (key->flags & KEY_NULLABLE && node_is_null(node)) {
        *value = (int64_t)key->min - 1;
        return true;
    }
    if (!node_number(&num, node) || !num.whole || !in_range(key, num.x)) return false;
    *value = num.i;
    return true;
}

bool value_read_number(const struct key *key, const struct node *node, double *value)
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

bool value_read_choice(const char *const *choices, const struct node *node, int *value)
{
    if (node->kind != NODE_SCALAR) return false;
    for (int i = 0; choices[i]; i++)
        if (!strcmp(choices[i], node->text)) {
            *value = i;
            return true;
        }
    return false;
}

bool value_read_text(const struct key *key, const struct node *node, struct pool *pool,
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

int value_fault(struct err_list *errs, const struct node *node, const char *name,
                const char *expected)
{
    char found[NODE_TEXT_BYTES];
    if (node->kind != NODE_REFUSED)
        fault_add(errs, node->at, "%s: found %s, expected %s", name, node_found(node, found),
                  expected);
    return -1;
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
        if ((good = value_read_int(key, node, &i))) *(int *)field = (int)i;
        break;
    case KEY_INT64:
        if ((good = value_read_int(key, node, &i))) *(int64_t *)field = i;
        break;
    case KEY_SAME:
        if ((good = value_read_int(key, node, &i))) cfg->source->n_key_value_heads = (int)i;
        break;
    case KEY_NUMBER: good = value_read_number(key, node, field); break;
    case KEY_BOOL: good = read_bool(node, field); break;
    case KEY_CHOICE:
        if ((good = value_read_choice(key->choices, node, &choice))) *(int *)field = choice;
        break;
    case KEY_TEXT: good = value_read_text(key, node, pool, field); break;
    case KEY_FIXED: good = read_fixed(key, node); break;
    case KEY_SOURCES: return value_read_sources(key, node, pool, field, errs);
    case KEY_STAGES: return value_read_stages(key, node, field, errs);
    case KEY_RANGES: return value_read_ranges(key, node, field, errs);
    }
    if (good) return 0;
    return value_fault(errs, node, key->name, value_expected(key, expected));
}
