/* hint.c - what an unknown key was probably meant to be; see key_hint in keys.h. */
#include "config/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 64 };

static const char *leaf_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Lower case, '-' as '_': the spellings that people mix up. */
static void normalise(char out[MAX_NAME], const char *name, int n_name)
{
    int n = 0;
    for (; n < n_name && n < MAX_NAME - 1; n++)
        out[n] = name[n] == '-' ? '_' : (char)tolower((unsigned char)name[n]);
    out[n] = '\0';
}

/* A key inside a section of that leaf (below another section), or NULL. */
static const char *find_inner_section(const char *leaf)
{
    char inner[MAX_NAME + 2];
    snprintf(inner, sizeof inner, ".%s.", leaf);
    for (int i = 0; i < n_config_keys; i++)
        if (strstr(config_keys[i].name, inner)) return config_keys[i].name;
    return NULL;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, substitutions and swaps of neighbours that turn a into b. */
static int distance(const char *a, const char *b)
{
    const int n_a = (int)strlen(a), n_b = (int)strlen(b);
    int d[MAX_NAME][MAX_NAME];
    for (int i = 0; i <= n_a; i++) d[i][0] = i;
    for (int j = 0; j <= n_b; j++) d[0][j] = j;
    for (int i = 1; i <= n_a; i++)
        for (int j = 1; j <= n_b; j++) {
            const int changed = a[i - 1] != b[j - 1];
            d[i][j] = min_int(min_int(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + changed);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min_int(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n_a][n_b];
}

/* The key of that leaf in another section, or -1. */
static int find_elsewhere(const char *leaf)
{
    for (int i = 0; i < n_config_keys; i++)
        if (!strcmp(leaf_of(config_keys[i].name), leaf)) return i;
    return -1;
}

/* Spelling mistakes, or one name being the beginning of the other: warmup, warmup_steps. */
static int unlikeness(const char *leaf, const char *known)
{
    const size_t n = strlen(leaf), n_known = strlen(known);
    const bool begins = n >= 3 && n < n_known && known[n] == '_' && !strncmp(leaf, known, n);
    const bool goes_on = n > n_known && leaf[n_known] == '_' && !strncmp(leaf, known, n_known);
    const int mistakes = distance(leaf, known);
    return begins || (goes_on && n_known >= 3) ? min_int(mistakes, 2) : mistakes;
}

/* The key of the nearest spelling among the keys and what others call them, or NULL. */
static const char *find_nearest(const char *name, const char *leaf)
{
    const size_t n_section = (size_t)(leaf_of(name) - name);
    const char *best = NULL;
    int best_cost = 2 * min_int(1 + (int)strlen(leaf) / 3, 4) + 2;
    for (int i = 0; i < n_config_keys; i++) {
        const char *known = config_keys[i].name;
        const bool here =
            (size_t)(leaf_of(known) - known) == n_section && !strncmp(known, name, n_section);
        const int cost = 2 * unlikeness(leaf, leaf_of(known)) + !here; /* own section wins a tie */
        if (cost < best_cost) best_cost = cost, best = known;
    }
    for (int i = 0; i < n_foreign_names; i++) {
        const int mistakes = distance(leaf, foreign_names[i].name);
        if (!foreign_names[i].key || mistakes > 2 || 2 * mistakes >= best_cost) continue;
        best_cost = 2 * mistakes;
        best = foreign_names[i].key;
    }
    return best;
}

/* The nearest section of a name that has no dot, or NULL. */
static const char *find_section(const char *name, char section[MAX_NAME])
{
    int best_cost = 3;
    for (int i = 0; i < n_config_keys; i++) {
        const char *known = config_keys[i].name;
        char first[MAX_NAME];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(known, "."), known);
        const int cost = distance(name, first);
        if (cost < best_cost) best_cost = cost, strcpy(section, first);
    }
    return best_cost < 3 ? section : NULL;
}

/* The row of that name, or with section.leaf in it; NULL: none. */
static const struct foreign *find_foreign(const char *name, int n_name)
{
    char exact[MAX_NAME];
    normalise(exact, name, n_name);
    for (int i = 0; i < n_foreign_names; i++)
        if (!strcmp(foreign_names[i].name, exact)) return &foreign_names[i];
    return NULL;
}

/* The last part or, in a section that is not ours, what that is called. */
static const struct foreign *find_foreign_part(const char *name)
{
    const int n_first = (int)strcspn(name, ".");
    const struct foreign *f = find_foreign(leaf_of(name), (int)strlen(leaf_of(name)));
    if (!f && !key_is_section(name, (size_t)n_first)) f = find_foreign(name, n_first);
    return f;
}

static const char *foreign_hint(const struct foreign *f, char buf[KEY_HINT_BYTES])
{
    const char *what = f->key && key_is_section(f->key, strlen(f->key)) ? "section" : "key";
    if (f->key)
        snprintf(buf, KEY_HINT_BYTES, "nearest known %s is %s%s%s%s", what, f->key,
                 f->remark ? " (" : "", f->remark ? f->remark : "", f->remark ? ")" : "");
    else
        snprintf(buf, KEY_HINT_BYTES, "%s", f->remark);
    return buf;
}

const char *key_hint(const char *name, char buf[KEY_HINT_BYTES])
{
    char leaf[MAX_NAME], section[MAX_NAME];
    normalise(leaf, leaf_of(name), (int)strlen(leaf_of(name)));
    const int elsewhere = find_elsewhere(leaf);
    const struct foreign *foreign = find_foreign(name, (int)strlen(name));
    if (!foreign && elsewhere < 0) foreign = find_foreign_part(name);
    if (foreign) return foreign_hint(foreign, buf);
    if (!strchr(name, '.') && find_section(leaf, section)) {
        snprintf(buf, KEY_HINT_BYTES, "nearest known section is %s", section);
        return buf;
    }
    const char *known = elsewhere >= 0 ? config_keys[elsewhere].name : NULL;
    if (known && strncmp(known, name, (size_t)(leaf_of(known) - known))) {
        snprintf(buf, KEY_HINT_BYTES, "%s belongs to section %.*s: %s", leaf,
                 (int)(leaf_of(known) - known - 1), known, known);
        return buf;
    }
    if ((known = find_inner_section(leaf))) {
        snprintf(buf, KEY_HINT_BYTES, "nearest known section is %.*s",
                 (int)(leaf_of(known) - known - 1), known);
        return buf;
    }
    const char *nearest = find_nearest(name, leaf);
    if (nearest)
        snprintf(buf, KEY_HINT_BYTES, "nearest known key is %s", nearest);
    else
        snprintf(buf, KEY_HINT_BYTES, "no known key is near; all keys are in configs/README.md");
    return buf;
}
