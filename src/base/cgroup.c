/* cgroup.c - see cgroup.h; the files are described in the kernel's cgroups(7). */
#include "base/cgroup.h"

#include "base/mem.h"
#include "base/path.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE = 2 * PATH_BYTES };

/* One hierarchy of control groups with a memory controller. */
struct hierarchy {
    bool v2;
    char top[PATH_BYTES], mounted[PATH_BYTES]; /* the group that is mounted, and where */
};

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (!strncmp(at, word, n) && (at[n] == ',' || at[n] == '\0')) return true;
    }
    return false;
}

/* A line of mountinfo: "35 31 0:32 TOP MOUNTED rw,relatime shared:9 - TYPE SOURCE rw,memory". */
static bool parse_mount(const char *line, struct hierarchy *h)
{
    char type[32], options[512];
    const char *behind = strstr(line, " - ");
    if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", h->top, h->mounted) != 2 ||
        sscanf(behind, " - %31s %*s %511s", type, options) != 2)
        return false;
    h->v2 = !strcmp(type, "cgroup2");
    return h->v2 || (!strcmp(type, "cgroup") && has_word(options, "memory"));
}

static FILE *open_below(const char *root, const char *path)
{
    char full[PATH_BYTES];
    return fopen(path_print(full, "%s%s", root, path), "r");
}

/* This process's group in the hierarchy, from a line "4:cpu,memory:/job_7" or "0::/job_7". */
static bool find_group(const char *root, const struct hierarchy *h, char group[PATH_BYTES])
{
    char line[LINE];
    bool found = false;
    FILE *in = open_below(root, "/proc/self/cgroup");
    while (in && !found && fgets(line, sizeof line, in)) {
        char *list = strchr(line, ':'), *path = list ? strchr(++list, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = (h->v2 ? *list == '\0' : has_word(list, "memory")) && strlen(path) < PATH_BYTES;
        if (found) strcpy(group, path);
    }
    if (in) fclose(in);
    return found;
}

/* The part of the group's path below the mounted one: a container may see only its own group, under
 * a path that speaks of the machine. */
static const char *path_below(const char *group, const char *top)
{
    const size_t n = strlen(top);
    if (!strcmp(top, "/")) return strncmp(group, "/..", 3) != 0 && group[1] ? group : "";
    return !strncmp(group, top, n) && group[n] == '/' ? group + n : "";
}

/* What is done with each limit of this process. */
struct visitor {
    void (*visit)(struct visitor *v, const struct memory_bound *bound, const char *file);
    struct memory_claim *claim;       /* of add_bound */
    const struct memory_bound *bound; /* of take_name */
    char *name;
};

static void visit_group(struct visitor *v, const char *root, const char *dir, bool v2)
{
    char file[PATH_BYTES], full[PATH_BYTES];
    unsigned long long bytes;
    struct stat st;
    path_print(file, "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    FILE *in = stat(path_print(full, "%s%s", root, dir), &st) == 0 ? open_below(root, file) : NULL;
    const bool limited = in && fscanf(in, "%llu", &bytes) == 1; /* "max" is no number */
    if (in) fclose(in);
    if (limited) v->visit(v, &(struct memory_bound){{st.st_dev, st.st_ino}, bytes}, file);
}

/* The process's own group and all groups around it. */
static void visit_hierarchy(struct visitor *v, const char *root, const struct hierarchy *h)
{
    char group[PATH_BYTES], dir[PATH_BYTES];
    if (!find_group(root, h, group)) return;
    path_print(dir, "%s%s", h->mounted, path_below(group, h->top));
    for (const size_t n = strlen(h->mounted); strlen(dir) >= n; *strrchr(dir, '/') = '\0') {
        visit_group(v, root, dir, h->v2);
        if (!strchr(dir, '/')) return;
    }
}

static void visit_all(struct visitor *v, const char *root)
{
    char line[LINE];
    struct hierarchy h;
    FILE *in = open_below(root, "/proc/self/mountinfo");
    while (in && fgets(line, sizeof line, in))
        if (parse_mount(line, &h)) visit_hierarchy(v, root, &h);
    if (in) fclose(in);
}

static void add_bound(struct visitor *v, const struct memory_bound *bound, const char *file)
{
    struct memory_claim *c = v->claim;
    (void)file;
    if (bound->bytes < c->bound[0].bytes && c->n < MAX_MEMORY_BOUNDS) c->bound[c->n++] = *bound;
}

void memory_claim_init(struct memory_claim *claim, uint64_t bytes, const char *root)
{
    struct visitor v = {.visit = add_bound, .claim = claim};
    *claim = (struct memory_claim){.bytes = bytes, .n = 1};
    claim->bound[0].bytes = mem_physical();
    visit_all(&v, root);
}

static bool same_group(const struct memory_bound *a, const struct memory_bound *b)
{
    return a->group[0] == b->group[0] && a->group[1] == b->group[1];
}

static bool is_bound_by(const struct memory_claim *claim, const struct memory_bound *bound)
{
    for (int i = 0; i < claim->n; i++)
        if (same_group(&claim->bound[i], bound)) return true;
    return false;
}

void memory_fit_find(struct memory_fit *fit, const struct memory_claim *claim, int n, int me)
{
    for (int i = 0; i < claim[me].n; i++) {
        struct memory_fit f = {.bound = claim[me].bound[i]};
        for (int r = 0; r < n; r++) {
            if (!is_bound_by(&claim[r], &f.bound)) continue;
            f.bytes += claim[r].bytes;
            f.n++;
        }
        const double used = (double)f.bytes / (double)f.bound.bytes;
        if (i == 0 || used > (double)fit->bytes / (double)fit->bound.bytes) *fit = f;
    }
}

static void take_name(struct visitor *v, const struct memory_bound *bound, const char *file)
{
    if (same_group(bound, v->bound))
        snprintf(v->name, MEMORY_BOUND_NAME, "the cgroup limit %s", file);
}

void memory_bound_name(const struct memory_bound *bound, char name[MEMORY_BOUND_NAME],
                       const char *root)
{
    struct visitor v = {.visit = take_name, .bound = bound, .name = name};
    strcpy(name, "this machine");
    if (bound->group[1] != 0) visit_all(&v, root);
}
