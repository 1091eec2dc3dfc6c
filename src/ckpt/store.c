/* store.c - see store.h: the directories. reader.c has the tensors. */
#define _GNU_SOURCE /* renameat2 */
#include "ckpt/store.h"

#include "base/file.h"
#include "ckpt/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP ".tmp"
#define LEFT ".left"

const char *store_path(char path[CKPT_PATH], const char *root, int64_t step)
{
    return path_print(path, "%s/step-%08lld", root, (long long)step);
}

const char *store_tmp_path(char path[CKPT_PATH], const char *root, int64_t step)
{
    return path_print(path, "%s/step-%08lld" TMP, root, (long long)step);
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

const char *store_resolve_root(char root[CKPT_PATH], const char *path)
{
    struct stat st;
    path_print(root, "%s/checkpoints", path);
    return lstat(root, &st) == 0 ? root : path_print(root, "%s", path);
}

static bool has_manifest(const char *dir)
{
    char file[CKPT_PATH];
    return access(path_print(file, "%s/" CKPT_MANIFEST, dir), F_OK) == 0;
}

/* ROOT/latest that leads nowhere, or is not there, stands for ROOT. */
static void drop_latest(char *path)
{
    static const char end[] = "/latest";
    const size_t n = strlen(path);
    if (n > strlen(end) && !strcmp(path + n - strlen(end), end)) path[n - strlen(end)] = '\0';
}

const char *store_resolve(char dir[CKPT_PATH], const char *path)
{
    char root[CKPT_PATH];
    struct fault fault;
    int64_t *steps;
    path_print(dir, "%s", path);
    if (has_manifest(dir)) return dir;
    drop_latest(dir);
    const int n = store_try_list(store_resolve_root(root, dir), &steps, &fault);
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        struct manifest m;
        found = !manifest_try_read(&m, store_path(dir, root, steps[i]), &fault);
        if (!found) warn_line("skipping checkpoint %s (%s)", dir, fault.why);
        manifest_free(&m);
    }
    free(steps);
    return found ? dir : path_print(dir, "%s", path);
}

static int newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* A link to a disk that is not mounted is not the same as nothing. */
static bool is_absent(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static int try_list(const char *root, const char *end, int64_t **steps, struct fault *fault)
{
    *steps = NULL;
    int n = 0;
    struct file_op op;
    file_begin(&op, "listing", root);
    DIR *dir = opendir(root);
    file_end(&op);
    if (!dir && (errno == ENOTDIR || is_absent(root))) return 0;
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

/* A file that a save writes into the directory of a checkpoint. */
static bool is_of_checkpoint(const char *name)
{
    static const char end[] = ".h5";
    const size_t n = strlen(name);
    if (!strncmp(name, "tensors-", 8)) return n > 11 && !strcmp(name + n - strlen(end), end);
    return !strcmp(name, CKPT_MANIFEST) || !strcmp(name, "config.yaml") || !strcmp(name, "scratch");
}

static int try_unlink(const char *path, struct fault *fault)
{
    return unlink(path) == 0 || errno == ENOENT ? 0 : io_fault(fault, "remove", path);
}

/* The files of a checkpoint, and the directory when there were no others. */
static int try_empty(const char *path, struct fault *fault)
{
    char file[CKPT_PATH];
    DIR *dir = opendir(path);
    if (!dir) return io_fault(fault, "remove", path);
    int bad = 0;
    for (const struct dirent *entry; !bad && (entry = readdir(dir));)
        if (is_of_checkpoint(entry->d_name))
            bad = try_unlink(path_print(file, "%s/%s", path, entry->d_name), fault);
    closedir(dir);
    if (!bad && rmdir(path) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        bad = io_fault(fault, "remove", path);
    return bad;
}

int store_try_drop(const char *path, struct fault *fault)
{
    char file[CKPT_PATH];
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? 0 : io_fault(fault, "examine", path);
    if (!S_ISDIR(st.st_mode)) return try_unlink(path, fault); /* a link is not followed */
    /* What is left when this is cut short is no checkpoint. */
    if (try_unlink(path_print(file, "%s/" CKPT_MANIFEST, path), fault)) return -1;
    return try_empty(path, fault);
}

int store_try_prepare(const char *root, char scratch[CKPT_PATH], struct fault *fault)
{
    path_print(scratch, "%s/layout" TMP, root);
    return io_try_make_dirs(root, fault) || store_try_drop(scratch, fault) ? -1 : 0;
}

int store_try_begin(const char *root, int64_t step, struct fault *fault)
{
    char tmp[CKPT_PATH];
    if (io_try_make_dirs(root, fault)) return -1;
    if (store_try_drop(store_tmp_path(tmp, root, step), fault)) return -1;
    return mkdir(tmp, 0777) != 0 && errno != EEXIST ? io_fault(fault, "make", tmp) : 0;
}

/* from becomes to; what has that name, file or directory, goes when it has. */
static int try_replace(const char *from, const char *to, struct fault *fault)
{
    char aside[CKPT_PATH];
    if (rename(from, to) == 0) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
        return io_fault(fault, "rename to its name", from);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return store_try_drop(from, fault);
    /* This file system cannot exchange. */
    if (store_try_drop(path_print(aside, "%s" LEFT, to), fault)) return -1;
    if (rename(to, aside) != 0 || rename(from, to) != 0)
        return io_fault(fault, "rename to its name", from);
    return store_try_drop(aside, fault);
}

int store_try_publish(const char *root, const struct manifest *manifest, struct fault *fault)
{
    char tmp[CKPT_PATH], path[CKPT_PATH], file[CKPT_PATH];
    const int64_t step = manifest->state.step;
    store_tmp_path(tmp, root, step);
    store_path(path, root, step);
    path_print(file, "%s/config.yaml", tmp);
    if (io_try_write_file(file, manifest->config, (int64_t)strlen(manifest->config), fault))
        return -1;
    if (io_try_sync_dir(tmp, fault)) return -1;
    char *text = manifest_to_text(manifest);
    path_print(file, "%s/" CKPT_MANIFEST, tmp);
    const int bad = io_try_write_file(file, text, (int64_t)strlen(text), fault);
    free(text);
    if (bad || io_try_sync_dir(tmp, fault)) return -1;
    if (manifest_try_check_files(manifest, tmp, fault)) return -1;
    return try_replace(tmp, path, fault) || io_try_sync_dir(root, fault) ? -1 : 0;
}

int store_try_move_latest(const char *root, int64_t step, struct fault *fault)
{
    char target[64], link[CKPT_PATH], fresh[CKPT_PATH];
    snprintf(target, sizeof target, "step-%08lld", (long long)step);
    path_print(link, "%s/latest", root);
    path_print(fresh, "%s/latest" TMP, root);
    unlink(fresh);
    if (symlink(target, fresh) != 0) return io_fault(fault, "make", fresh);
    if (rename(fresh, link) == 0) return 0;
    io_fault(fault, "move", link);
    unlink(fresh);
    return -1;
}

static int try_drop_temporary(const char *root, int64_t newest, struct fault *fault)
{
    char path[CKPT_PATH];
    int64_t *steps;
    const int n = store_try_list_unfinished(root, &steps, fault);
    int bad = n < 0;
    for (int i = 0; !bad && i < n; i++)
        if (steps[i] <= newest) bad = store_try_drop(store_tmp_path(path, root, steps[i]), fault);
    free(steps);
    return bad;
}

int store_try_set_aside(const char *root, int64_t step, struct fault *fault)
{
    char path[CKPT_PATH], left[CKPT_PATH];
    int64_t *steps;
    const int n = store_try_list(root, &steps, fault);
    int bad = n < 0, moved = 0;
    for (int i = 0; !bad && i < n && steps[i] > step; i++, moved++) {
        path_print(left, "%s" LEFT, store_path(path, root, steps[i]));
        bad = store_try_drop(left, fault);
        if (!bad && rename(path, left) != 0) bad = io_fault(fault, "rename", path);
    }
    free(steps);
    return bad ? -1 : moved;
}

bool store_is_old(const int64_t *steps, int i, const struct store_keep *keep)
{
    const int64_t step = steps[i];
    return keep->last > 0 && i >= keep->last && step != keep->best && step != keep->written &&
           (keep->every == 0 || step % keep->every != 0);
}

int store_try_prune(const char *root, const struct store_keep *keep, struct fault *fault)
{
    char path[CKPT_PATH];
    int64_t *steps;
    const int n = store_try_list(root, &steps, fault);
    int bad = n < 0;
    for (int i = 0; !bad && i < n; i++)
        if (store_is_old(steps, i, keep))
            bad = store_try_drop(store_path(path, root, steps[i]), fault);
    if (!bad && n > 0) bad = try_drop_temporary(root, steps[0], fault);
    free(steps);
    return bad ? -1 : 0;
}

/* A name that the program gives to something in ROOT. */
static bool is_of_store(const char *name)
{
    const char *rest;
    if (step_of(name, &rest) >= 0) return !*rest || !strcmp(rest, TMP) || !strcmp(rest, LEFT);
    return !strcmp(name, "latest") || !strcmp(name, "latest" TMP) || !strcmp(name, "layout" TMP);
}

/* `latest` that is a directory is a copy by somebody else. */
static bool is_copy(const char *name, const char *path)
{
    struct stat st;
    return !strcmp(name, "latest") && lstat(path, &st) == 0 && !S_ISLNK(st.st_mode);
}

int store_try_clear(const char *root, struct fault *fault)
{
    char path[CKPT_PATH];
    DIR *dir = opendir(root);
    if (!dir && is_absent(root)) return 0;
    if (!dir) return io_fault(fault, "open", root);
    int bad = 0;
    for (const struct dirent *entry; !bad && (entry = readdir(dir));) {
        if (!is_of_store(entry->d_name)) continue;
        path_print(path, "%s/%s", root, entry->d_name);
        if (!is_copy(entry->d_name, path)) bad = store_try_drop(path, fault);
    }
    closedir(dir);
    return bad;
}
