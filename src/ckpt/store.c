/* store.c - see store.h: the directories. reader.c has the tensors. */
#define _GNU_SOURCE /* renameat2 */
#include "ckpt/store.h"

#include "ckpt/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP ".tmp"

const char *store_path(char path[CKPT_PATH], const char *root, int64_t step)
{
    snprintf(path, CKPT_PATH, "%s/step-%08lld", root, (long long)step);
    return path;
}

const char *store_tmp_path(char path[CKPT_PATH], const char *root, int64_t step)
{
    snprintf(path, CKPT_PATH, "%s/step-%08lld" TMP, root, (long long)step);
    return path;
}

const char *store_resolve_root(char root[CKPT_PATH], const char *path)
{
    snprintf(root, CKPT_PATH, "%.4000s/checkpoints", path);
    if (access(root, F_OK) != 0) snprintf(root, CKPT_PATH, "%.4000s", path);
    return root;
}

const char *store_resolve(char dir[CKPT_PATH], const char *path)
{
    char root[CKPT_PATH];
    snprintf(dir, CKPT_PATH, "%.4000s/latest", store_resolve_root(root, path));
    if (access(dir, F_OK) != 0) snprintf(dir, CKPT_PATH, "%.4000s", path);
    return dir;
}

/* The step of step-NNNNNNNN and what follows it; -1: another name. */
static int64_t step_of(const char *name, const char **rest)
{
    char *end;
    if (strncmp(name, "step-", 5) != 0 || strspn(name + 5, "0123456789") < 8) return -1;
    errno = 0;
    const long long step = strtoll(name + 5, &end, 10);
    *rest = end;
    return errno ? -1 : step;
}

static int newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static int try_list(const char *root, const char *end, int64_t **steps, struct fault *fault)
{
    *steps = NULL;
    int n = 0;
    DIR *dir = opendir(root);
    if (!dir && (errno == ENOENT || errno == ENOTDIR)) return 0;
    if (!dir) return io_fault(fault, "open", root);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *rest;
        const int64_t step = step_of(entry->d_name, &rest);
        if (step < 0 || strcmp(rest, end) != 0) continue;
        int64_t *grown = realloc(*steps, sizeof **steps * (size_t)(n + 1));
        CHECK(grown, "no memory for a list of %d checkpoints", n);
        grown[n++] = step;
        *steps = grown;
    }
    closedir(dir);
    if (n > 0) qsort(*steps, (size_t)n, sizeof **steps, newest_first);
    return n;
}

int store_try_list(const char *root, int64_t **steps, struct fault *fault)
{
    return try_list(root, "", steps, fault);
}

int store_try_list_unfinished(const char *root, int64_t **steps, struct fault *fault)
{
    return try_list(root, TMP, steps, fault);
}

int store_try_remove(const char *path, struct fault *fault)
{
    char inside[CKPT_PATH];
    if (unlink(path) == 0 || errno == ENOENT) return 0;
    DIR *dir = opendir(path);
    if (!dir) return io_fault(fault, "remove", path);
    int bad = 0;
    for (const struct dirent *entry; !bad && (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) >= CKPT_PATH)
            bad = fault_set(fault, CODE_IO, "%s: too long a path", path);
        else
            bad = store_try_remove(inside, fault);
    }
    closedir(dir);
    if (!bad && rmdir(path) != 0) bad = io_fault(fault, "remove", path);
    return bad;
}

int store_try_prepare(const char *root, char scratch[CKPT_PATH], struct fault *fault)
{
    if (strlen(root) > PATH_MAX - 64)
        return fault_set(fault, CODE_CONFIG, "%.200s...: too long a path", root);
    snprintf(scratch, CKPT_PATH, "%s/layout" TMP, root);
    return io_try_make_dirs(root, fault) || store_try_remove(scratch, fault) ? -1 : 0;
}

int store_try_begin(const char *root, int64_t step, struct fault *fault)
{
    char tmp[CKPT_PATH];
    if (io_try_make_dirs(root, fault)) return -1;
    if (store_try_remove(store_tmp_path(tmp, root, step), fault)) return -1;
    return mkdir(tmp, 0777) != 0 ? io_fault(fault, "make", tmp) : 0;
}

/* from becomes to; what has that name, file or directory, becomes from and is removed. */
static int try_replace(const char *from, const char *to, struct fault *fault)
{
    if (rename(from, to) == 0) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
        return io_fault(fault, "rename to its name", from);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return store_try_remove(from, fault);
    /* This file system cannot exchange: the new one is whole under its temporary name meanwhile. */
    return store_try_remove(to, fault) || rename(from, to) != 0
               ? io_fault(fault, "rename to its name", from)
               : 0;
}

static int try_move_latest(const char *root, int64_t step, struct fault *fault)
{
    char target[64], link[CKPT_PATH], fresh[CKPT_PATH];
    snprintf(target, sizeof target, "step-%08lld", (long long)step);
    snprintf(link, sizeof link, "%s/latest", root);
    snprintf(fresh, sizeof fresh, "%s/latest" TMP, root);
    unlink(fresh);
    if (symlink(target, fresh) != 0) return io_fault(fault, "make", fresh);
    return rename(fresh, link) != 0 ? io_fault(fault, "move", link) : 0;
}

int store_try_publish(const char *root, const struct manifest *manifest, struct fault *fault)
{
    char tmp[CKPT_PATH], path[CKPT_PATH], file[CKPT_PATH + 32];
    const int64_t step = manifest->state.step;
    store_tmp_path(tmp, root, step);
    store_path(path, root, step);
    snprintf(file, sizeof file, "%s/config.yaml", tmp);
    if (io_try_write_file(file, manifest->config, (int64_t)strlen(manifest->config), fault))
        return -1;
    if (io_try_sync_dir(tmp, fault)) return -1;
    char *text = manifest_to_text(manifest);
    snprintf(file, sizeof file, "%s/" CKPT_MANIFEST, tmp);
    const int bad = io_try_write_file(file, text, (int64_t)strlen(text), fault);
    free(text);
    if (bad || io_try_sync_dir(tmp, fault)) return -1;
    if (try_replace(tmp, path, fault) || io_try_sync_dir(root, fault)) return -1;
    return try_move_latest(root, step, fault) || io_try_sync_dir(root, fault) ? -1 : 0;
}

/* Without its manifest first: what is left when that is cut short is no checkpoint. */
static int try_drop(const char *path, struct fault *fault)
{
    char file[CKPT_PATH + 32];
    snprintf(file, sizeof file, "%s/" CKPT_MANIFEST, path);
    if (unlink(file) != 0 && errno != ENOENT) return io_fault(fault, "remove", file);
    return store_try_remove(path, fault);
}

static int try_drop_temporary(const char *root, int64_t newest, struct fault *fault)
{
    char path[CKPT_PATH];
    int64_t *steps;
    const int n = store_try_list_unfinished(root, &steps, fault);
    int bad = n < 0;
    for (int i = 0; !bad && i < n; i++)
        if (steps[i] <= newest) bad = try_drop(store_tmp_path(path, root, steps[i]), fault);
    free(steps);
    return bad;
}

int store_try_set_aside(const char *root, int64_t step, struct fault *fault)
{
    char path[CKPT_PATH], left[CKPT_PATH + 8];
    int64_t *steps;
    const int n = store_try_list(root, &steps, fault);
    int bad = n < 0, moved = 0;
    for (int i = 0; !bad && i < n && steps[i] > step; i++, moved++) {
        snprintf(left, sizeof left, "%s.left", store_path(path, root, steps[i]));
        bad = store_try_remove(left, fault);
        if (!bad && rename(path, left) != 0) bad = io_fault(fault, "rename", path);
    }
    free(steps);
    return bad ? -1 : moved;
}

bool store_is_old(const int64_t *steps, int i, int keep_last, int64_t keep_every, int64_t never)
{
    return keep_last > 0 && i >= keep_last && steps[i] != never &&
           (keep_every == 0 || steps[i] % keep_every != 0);
}

int store_try_prune(const char *root, int keep_last, int64_t keep_every, int64_t never,
                    struct fault *fault)
{
    char path[CKPT_PATH];
    int64_t *steps;
    const int n = store_try_list(root, &steps, fault);
    int bad = n < 0;
    for (int i = 0; !bad && i < n; i++)
        if (store_is_old(steps, i, keep_last, keep_every, never))
            bad = try_drop(store_path(path, root, steps[i]), fault);
    if (!bad && n > 0) bad = try_drop_temporary(root, steps[0], fault);
    free(steps);
    return bad ? -1 : 0;
}
