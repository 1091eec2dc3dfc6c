/* setting.c - see setting.h: a key is put together from the names above it, each two columns to the
 * left of what it holds. */
#include "config/setting.h"

#include <string.h>

bool setting_next(struct setting *s)
{
    while (*s->rest) {
        const char *line = s->rest, *end = line + strcspn(line, "\n");
        s->rest = *end ? end + 1 : end;
        const char *name = line + strspn(line, " ");
        const char *colon = memchr(name, ':', (size_t)(end - name));
        const size_t depth = (size_t)(name - line) / 2;
        if (*name == '#' || !colon || depth >= SETTING_DEPTH || colon - name >= SETTING_NAME)
            continue;
        const size_t n = depth ? s->n_section[depth - 1] : 0, n_name = (size_t)(colon - name);
        memcpy(s->key + n, name, n_name);
        s->n_section[depth] = n + n_name + 1;
        s->key[n + n_name] = '.';
        if (colon + 1 == end) continue; /* a section */
        s->key[n + n_name] = '\0';
        s->value = colon + 2;
        s->n_value = (int)(end - s->value);
        return true;
    }
    return false;
}

bool setting_find(struct setting *s, const char *text, const char *key)
{
    *s = (struct setting){.rest = text};
    while (setting_next(s))
        if (!strcmp(s->key, key)) return true;
    return false;
}

bool setting_equal(const struct setting *a, const struct setting *b)
{
    return a->n_value == b->n_value && !memcmp(a->value, b->value, (size_t)a->n_value);
}
