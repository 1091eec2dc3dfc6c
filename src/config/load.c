/*
 * load.c - files, their bases and command-line overrides -> struct config. A later value replaces
 * an earlier one: defaults, bases from left to right, the file, the command line. Faults never
 * stop the reading, so that all of them are listed at once.
 */
#include "config/value.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE_BYTES = 1 << 20, MAX_FILES = 64, MAX_KEY_NAME = 200 };

struct loader {
    struct config *cfg;
    struct err_list *errs;
    struct pool *pool;
    struct origin *origin;   /* [n_config_keys] */
    enum origin_kind kind;   /* of what is being read */
    const struct node *root; /* of the main file; NULL when it could not be read */
    int n_files;
    bool beyond_model; /* a file sets a key outside section model */
    bool unread;       /* a file could not be read: missing keys say nothing */
};

/* The files that lead to the one being read. */
struct chain {
    const struct chain *before;
    const char *file;
    dev_t device;
    ino_t inode;
};

static void load_file(struct loader *ld, const char *file, struct place from,
                      const struct chain *before);

static void set_key(struct loader *ld, int row, const struct node *key, const struct node *value)
{
    struct origin *origin = &ld->origin[row];
    const int bad = value_try_set(ld->cfg, &config_keys[row], value, ld->pool, ld->errs);
    origin->kind = bad ? ORIGIN_BAD : ld->kind;
    origin->at = key->at;
    if (ld->kind == ORIGIN_FILE && strncmp(config_keys[row].name, "model.", 6))
        ld->beyond_model = true;
}

static void report_unknown(struct loader *ld, struct place at, const char *name)
{
    char hint[KEY_HINT_BYTES];
    if (key_is_section(name, strlen(name)))
        fault_add(ld->errs, at, "%s is a section, expected one of its keys: %s.KEY=value", name,
                  name);
    else
        fault_add(ld->errs, at, "%s: unknown key; %s", name, key_hint(name, hint));
}

/* Whether the key of a map may be looked at: a scalar, not a merge key, not seen before. */
static bool key_is_usable(struct loader *ld, const struct node *map, const struct node *key)
{
    char found[NODE_TEXT_BYTES];
    if (key->kind == NODE_REFUSED) return false;
    if (key->kind != NODE_SCALAR) {
        fault_add(ld->errs, key->at, "found %s as a key, expected a name", node_found(key, found));
        return false;
    }
    if (!strcmp(key->text, "<<")) {
        fault_add(ld->errs, key->at, "merge key <<: refused; use base: FILE");
        return false;
    }
    for (const struct node *k = map->first; k != key; k = k->next)
        if (k->kind == NODE_SCALAR && !strcmp(k->text, key->text)) {
            fault_add(ld->errs, key->at, "%s: duplicate key; first given in line %d",
                      node_found(key, found), k->at.line);
            return false;
        }
    return true;
}

/* The entries of a section (name "" for the whole file). null is an empty section. */
static void apply_section(struct loader *ld, const char *section, const struct node *map)
{
    char name[MAX_KEY_NAME], found[NODE_TEXT_BYTES];
    if (map->kind == NODE_REFUSED || node_is_null(map)) return;
    if (map->kind != NODE_MAP) {
        ld->unread = ld->unread || !*section;
        fault_add(ld->errs, map->at, "%s: found %s, expected a section (key: value lines)",
                  *section ? section : "the file", node_found(map, found));
        return;
    }
    for (const struct node *key = map->first; key && ld->errs->n <= MAX_FAULTS; key = key->next) {
        if (!key_is_usable(ld, map, key)) continue;
        const bool top = !*section;
        const bool dotted = strchr(key->text, '.'); /* one name here is one level */
        if (top && !strcmp(key->text, "base")) continue;
        snprintf(name, sizeof name, "%s%s%.100s", section, top ? "" : ".", node_found(key, found));
        const int row = dotted ? -1 : key_find(name, strlen(name));
        if (row >= 0)
            set_key(ld, row, key, key->value);
        else if (!dotted && key_is_section(name, strlen(name)))
            apply_section(ld, name, key->value);
        else if (dotted && key_find(name, strlen(name)) >= 0)
            fault_add(ld->errs, key->at,
                      "%s: found a dotted key, expected the key inside its section", name);
        else
            report_unknown(ld, key->at, name);
    }
}

static const struct node *map_get(const struct node *map, const char *name)
{
    if (!map || map->kind != NODE_MAP) return NULL;
    for (const struct node *key = map->first; key; key = key->next)
        if (key->kind == NODE_SCALAR && !strcmp(key->text, name)) return key;
    return NULL;
}

/* path as seen from the directory of file. */
static const char *path_beside(struct pool *pool, const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    const int n_dir = *path == '/' || !slash ? 0 : (int)(slash - file) + 1;
    const size_t bytes = (size_t)n_dir + strlen(path) + 1;
    char *joined = pool_take(pool, bytes);
    snprintf(joined, bytes, "%.*s%s", n_dir, file, path);
    return joined;
}

static void load_base(struct loader *ld, const char *file, const struct node *node,
                      const struct chain *chain)
{
    char found[NODE_TEXT_BYTES];
    if (node->kind == NODE_SCALAR && !node_is_null(node) && *node->text) {
        load_file(ld, path_beside(ld->pool, file, node->text), node->at, chain);
        return;
    }
    ld->unread = true;
    if (node->kind != NODE_REFUSED)
        fault_add(ld->errs, node->at, "base: found %s, expected a file or a list of files",
                  node_found(node, found));
}

static void load_bases(struct loader *ld, const char *file, const struct node *root,
                       const struct chain *chain)
{
    const struct node *base = map_get(root, "base");
    if (!base) return;
    if (base->value->kind != NODE_LIST) {
        load_base(ld, file, base->value, chain);
        return;
    }
    for (const struct node *item = base->value->first; item; item = item->next)
        load_base(ld, file, item, chain);
}

/* The text of an open file, or NULL with the reason in why. */
static char *read_all(struct loader *ld, const char *file, int fd, const struct stat *st, size_t *n,
                      const char **why)
{
    if (st->st_size > MAX_FILE_BYTES) {
        *why = "larger than 1 MiB, which no configuration is";
        return NULL;
    }
    const size_t cap = (size_t)st->st_size + 1;
    char *text = pool_take(ld->pool, cap);
    const ssize_t got = file_read(fd, file, text, cap, 0);
    *n = got < 0 ? 0 : (size_t)got;
    if (got >= 0 && *n < cap) return text;
    *why = got < 0 ? strerror(errno) : "it grew while it was read";
    return NULL;
}

/* The main file stands before its message already. */
static void report_unread(struct loader *ld, struct place from, const char *file, const char *why)
{
    if (from.line)
        fault_add(ld->errs, from, "cannot read %s: %s", file, why);
    else
        fault_add(ld->errs, from, "cannot be read: %s", why);
}

/* The file's text, or NULL with a fault at the place that named it. */
static char *read_file(struct loader *ld, struct chain *link, struct place from, size_t *n)
{
    struct stat st;
    const char *why;
    char *text = NULL;
    if (ld->n_files++ >= MAX_FILES) {
        fault_add(ld->errs, from, "base: more than %d files are read", MAX_FILES);
        return NULL;
    }
    const int fd = file_open(link->file, &st, &why);
    if (fd < 0) {
        report_unread(ld, from, link->file, why);
        return NULL;
    }
    why = NULL;
    link->device = st.st_dev;
    link->inode = st.st_ino;
    for (const struct chain *c = link->before; c; c = c->before)
        if (c->device == st.st_dev && c->inode == st.st_ino) why = "the file includes itself";
    if (!why) text = read_all(ld, link->file, fd, &st, n, &why);
    close(fd);
    if (!text) report_unread(ld, from, link->file, why);
    return text;
}

static void load_file(struct loader *ld, const char *file, struct place from,
                      const struct chain *before)
{
    struct chain link = {.before = before, .file = file};
    size_t n = 0;
    const char *text = read_file(ld, &link, from, &n);
    const struct node *root = text ? tree_try_parse(ld->pool, file, text, n, ld->errs) : NULL;
    if (!root) {
        ld->unread = true;
        return;
    }
    if (!before) ld->root = root;
    load_bases(ld, file, root, &link);
    apply_section(ld, "", root);
}

/* Whether s is UTF-8 text that a YAML file may hold, without control characters: anything else
 * could not be handed on to the other ranks. */
static bool text_is_yaml(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    while (*u) {
        const int more = *u < 0x80       ? 0
                         : *u >> 5 == 6  ? 1
                         : *u >> 4 == 14 ? 2
                         : *u >> 3 == 30 ? 3
                                         : -1;
        if (more < 0) return false;
        uint32_t c = more ? *u & (0x3fu >> more) : *u;
        u++;
        for (int i = 0; i < more; i++, u++) {
            if (*u >> 6 != 2) return false;
            c = c << 6 | (*u & 0x3fu);
        }
        static const uint32_t first[] = {0x20, 0xa0, 0x800, 0x10000};
        if (c < first[more] || c == 0x7f || (c >= 0xd800 && c < 0xe000) || c == 0xfeff ||
            c == 0xfffe || c == 0xffff || c > 0x10ffff)
            return false;
    }
    return true;
}

/* The value of an override: the text itself for text keys and for a path, otherwise YAML. */
static const struct node *override_value(struct loader *ld, const struct key *key, const char *text)
{
    if (key->type == KEY_TEXT || (key->type == KEY_SOURCES && *text != '[' && *text != '{')) {
        struct node *node = pool_take(ld->pool, sizeof *node);
        node->text = text;
        return node;
    }
    return tree_try_parse(ld->pool, NULL, text, strlen(text), ld->errs);
}

static void apply_override(struct loader *ld, const char *text)
{
    const struct node here = {.kind = NODE_SCALAR, .text = text}; /* place: the command line */
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !text_is_yaml(text)) {
        char found[NODE_TEXT_BYTES];
        fault_add(ld->errs, here.at, "found %s, expected section.key=value in UTF-8",
                  node_found(&here, found));
        return;
    }
    char name[MAX_KEY_NAME];
    snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    const int row = key_find(name, strlen(name));
    if (row < 0) {
        report_unknown(ld, here.at, name);
        return;
    }
    const struct node *value = override_value(ld, &config_keys[row], equals + 1);
    if (value) {
        set_key(ld, row, &here, value);
        return;
    }
    fault_add(ld->errs, here.at, "%s: the value cannot be read", name);
    ld->origin[row] = (struct origin){ORIGIN_BAD, here.at};
}

static void set_defaults(struct loader *ld)
{
    for (int row = 0; row < n_config_keys; row++) {
        const struct key *key = &config_keys[row];
        if (!key->preset || key->type == KEY_FIXED || key->type == KEY_SAME) continue;
        const struct node *value =
            tree_try_parse(ld->pool, "keys.c", key->preset, strlen(key->preset), ld->errs);
        CHECK(value && !value_try_set(ld->cfg, key, value, ld->pool, ld->errs),
              "key table: bad default: %s", ld->errs->text);
    }
}

/* Where a key that is not there should have been: at its section in the main file. */
static struct place place_of_section(const struct loader *ld, const char *name)
{
    char section[MAX_KEY_NAME];
    snprintf(section, sizeof section, "%.*s", (int)strcspn(name, "."), name);
    const struct node *key = map_get(ld->root, section);
    return key ? key->at : (struct place){ld->cfg->source->file, 1, 1};
}

/* A file that sets nothing outside section model is a model file: it can be checked and counted,
 * and what a run needs besides is reported when somebody wants to run it. */
static void check_required(struct loader *ld)
{
    char expected[EXPECTED_BYTES];
    for (int row = 0; row < n_config_keys; row++) {
        const struct key *key = &config_keys[row];
        if (key->preset || ld->origin[row].kind != ORIGIN_DEFAULT) continue;
        const struct place at = place_of_section(ld, key->name);
        const bool needed = ld->beyond_model || ld->unread || !strncmp(key->name, "model.", 6);
        ld->origin[row] = (struct origin){needed ? ORIGIN_BAD : ORIGIN_MISSING, at};
        if (needed && !ld->unread)
            fault_add(ld->errs, at, "%s: missing, expected %s", key->name,
                      value_expected(key, expected));
    }
}

static struct loader loader_init(struct config *cfg, const char *file, struct err_list *errs)
{
    memset(cfg, 0, sizeof *cfg);
    cfg->source = calloc(1, sizeof *cfg->source);
    CHECK(cfg->source, "no memory for the configuration");
    struct pool *pool = &cfg->source->pool;
    cfg->source->origin = pool_take(pool, (size_t)n_config_keys * sizeof(struct origin));
    cfg->source->file = pool_text(pool, file, strlen(file));
    struct loader ld = {
        .cfg = cfg, .errs = errs, .pool = pool, .origin = cfg->source->origin, .kind = ORIGIN_FILE};
    set_defaults(&ld);
    return ld;
}

int config_try_load(struct config *cfg, const char *file, int n, char *const overrides[],
                    struct err_list *errs)
{
    const int n_errs = errs->n;
    struct loader ld = loader_init(cfg, file, errs);
    load_file(&ld, cfg->source->file, (struct place){cfg->source->file, 0, 0}, NULL);
    ld.kind = ORIGIN_COMMAND_LINE;
    for (int i = 0; i < n; i++)
        apply_override(&ld, pool_text(ld.pool, overrides[i], strlen(overrides[i])));
    check_required(&ld);
    rules_check(cfg, errs);
    return errs->n == n_errs ? 0 : -1;
}

int config_try_read(struct config *cfg, const char *name, const char *text, struct err_list *errs)
{
    const int n_errs = errs->n;
    struct loader ld = loader_init(cfg, name, errs);
    ld.root = tree_try_parse(ld.pool, cfg->source->file, text, strlen(text), errs);
    ld.unread = !ld.root;
    if (ld.root) apply_section(&ld, "", ld.root);
    check_required(&ld);
    rules_check(cfg, errs);
    return errs->n == n_errs ? 0 : -1;
}

void config_from_text(struct config *cfg, const char *text)
{
    struct err_list errs = {0};
    struct loader ld = loader_init(cfg, "rank 0's configuration", &errs);
    const struct node *root = tree_try_parse(ld.pool, cfg->source->file, text, strlen(text), &errs);
    if (root) apply_section(&ld, "", root);
    CHECK(errs.n == 0, "a resolved configuration does not read back: %s", errs.text);
}

void config_free(struct config *cfg)
{
    if (cfg->source) {
        pool_free(&cfg->source->pool);
        free(cfg->source);
    }
    memset(cfg, 0, sizeof *cfg);
}
