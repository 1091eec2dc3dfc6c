/*
 * faulty_io.c - a disk that fails, for tests: preloaded (LD_PRELOAD), it stands between the program
 * and the C library's calls on files whose path contains FAULTY_PATH ("checkpoints"), on the ranks
 * of FAULTY_RANKS ("0,2"; all). Processes that are no rank of mpirun are left alone.
 *
 *   FAULTY_CALL  which calls, of write, sync, rename, open, truncate, close, mkdir, symlink, unlink
 *                ("sync,rename"; all), and read, only when it is named
 *   FAULTY_AT    which of them: a number (the n-th of this rank), every, odd (the first, third,
 *                ...), or walk: in the checkpoint of step 2 n the one of number 1 + (n - 1) *
 *                FAULTY_STRIDE within it, so that every call of a save has its turn and every
 *                second save is a good one
 *   FAULTY_HOW   what happens: EIO, ENOSPC, EINTR; short (half of a write); kill (SIGKILL instead
 *                of the call); torn (half of a write, then SIGKILL); hang (the call never ends)
 *   FAULTY_SYNC_MS  a sync takes so long, and does not wait for the disk
 *   FAULTY_WRITE_MS a write takes so much longer
 *   FAULTY_LOG   a file that gets a line per call: seconds, rank, call, bytes, what happens, path
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long n_calls, n_in_step, step = -1; /* behind the lock */

static const char *setting(const char *name, const char *otherwise)
{
    const char *text = getenv(name);
    return text && *text ? text : otherwise;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Whether the word is one of "a,b,c". */
static int is_listed(const char *word, const char *list)
{
    char all[256], one[64];
    snprintf(all, sizeof all, ",%s,", list);
    snprintf(one, sizeof one, ",%s,", word);
    return strstr(all, one) != NULL;
}

/* Whether this process and this file are meant. */
static int is_meant(const char *path)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank && strstr(path, setting("FAULTY_PATH", "checkpoints")) &&
           is_listed(rank, setting("FAULTY_RANKS", rank));
}

/* Count a call of the kind asked for; whether it is the one that fails. */
static int is_due(const char *path)
{
    const char *at = setting("FAULTY_AT", "0"), *name = strstr(path, "step-");
    const long now = name ? strtol(name + 5, NULL, 10) : -1, n = ++n_calls;
    if (now > step) { /* older ones are removed meanwhile */
        step = now;
        n_in_step = 0;
    }
    n_in_step++;
    if (!strcmp(at, "every")) return 1;
    if (!strcmp(at, "odd")) return n % 2;
    if (strcmp(at, "walk") != 0) return n == atol(at);
    return step > 0 && step % 2 == 0 &&
           n_in_step == 1 + (step / 2 - 1) * atol(setting("FAULTY_STRIDE", "1"));
}

static void note(const char *call, size_t bytes, const char *what, const char *path)
{
    const char *log = getenv("FAULTY_LOG");
    char line[4400];
    struct timespec t;
    if (!log || !*log) return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int n = snprintf(line, sizeof line, "%lld.%09ld %s %s %zu %s %s\n", (long long)t.tv_sec,
                           t.tv_nsec, getenv("OMPI_COMM_WORLD_RANK"), call, bytes, what, path);
    const int fd = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (REAL(write)(fd, line, (size_t)n) != n) abort();
    REAL(close)(fd);
}

static void pause_ms(const char *name)
{
    const long ms = atol(setting(name, "0"));
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* What happens to this call: "", or FAULTY_HOW; kill and errors have happened already. */
static const char *judge(const char *call, const char *path, size_t bytes)
{
    const char *how = "";
    const int error = errno;
    if (!is_meant(path)) return "";
    pthread_mutex_lock(&lock);
    if (is_listed(call, setting("FAULTY_CALL", call)) && is_due(path))
        how = setting("FAULTY_HOW", "");
    note(call, bytes, *how ? how : "-", path);
    pthread_mutex_unlock(&lock);
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    while (!strcmp(how, "hang")) pause();
    errno = !strcmp(how, "EIO")      ? EIO
            : !strcmp(how, "ENOSPC") ? ENOSPC
            : !strcmp(how, "EINTR")  ? EINTR
                                     : error;
    return how;
}

static const char *path_of(int fd, char path[4096])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, 4095);
    path[n > 0 ? n : 0] = '\0';
    return path;
}

/* Whether the call itself is left out. */
static int fails(const char *how)
{
    return how[0] == 'E';
}

/* How many of a write's bytes are to be written; -1: it fails. */
static ssize_t judge_write(int fd, size_t bytes, const char **how)
{
    char path[4096];
    *how = judge("write", path_of(fd, path), bytes);
    if (is_meant(path)) pause_ms("FAULTY_WRITE_MS");
    if (fails(*how)) return -1;
    return (ssize_t)(!strcmp(*how, "short") || !strcmp(*how, "torn") ? (bytes + 1) / 2 : bytes);
}

#define WRITE(name, params, ...)                                                                   \
    ssize_t name params                                                                            \
    {                                                                                              \
        const char *how;                                                                           \
        const ssize_t n = judge_write(fd, bytes, &how);                                            \
        const ssize_t written = n < 0 ? n : REAL(name)(fd, from, (size_t)n, ##__VA_ARGS__);        \
        if (!strcmp(how, "torn")) kill(getpid(), SIGKILL);                                         \
        return written;                                                                            \
    }
WRITE(write, (int fd, const void *from, size_t bytes))
WRITE(pwrite, (int fd, const void *from, size_t bytes, off_t offset), offset)
WRITE(pwrite64, (int fd, const void *from, size_t bytes, off64_t offset), offset)

static int judge_read(int fd, size_t bytes)
{
    char path[4096];
    if (!is_listed("read", setting("FAULTY_CALL", ""))) return 0;
    return fails(judge("read", path_of(fd, path), bytes));
}
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    return judge_read(fd, bytes) ? -1 : REAL(pread)(fd, to, bytes, offset);
}

static int sync_file(int fd, int (*real)(int))
{
    char path[4096];
    if (fails(judge("sync", path_of(fd, path), 0))) return -1;
    if (!getenv("FAULTY_SYNC_MS") || !is_meant(path)) return real(fd);
    pause_ms("FAULTY_SYNC_MS");
    return 0;
}
int fsync(int fd)
{
    return sync_file(fd, REAL(fsync));
}
int fdatasync(int fd)
{
    return sync_file(fd, REAL(fdatasync));
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        const unsigned mode = flags & O_CREAT ? va_arg(more, unsigned) : 0;                        \
        va_end(more);                                                                              \
        return fails(judge("open", path, 0)) ? -1 : REAL(name)(path, flags, mode);                 \
    }
OPEN(open)
OPEN(open64)

/* Calls that need no more than the path. */
#define CALL(name, word, file, params, ...)                                                        \
    int name params                                                                                \
    {                                                                                              \
        char of[4096];                                                                             \
        (void)of;                                                                                  \
        return fails(judge(word, file, 0)) ? -1 : REAL(name)(__VA_ARGS__);                         \
    }
CALL(ftruncate, "truncate", path_of(fd, of), (int fd, off_t n), fd, n)
CALL(ftruncate64, "truncate", path_of(fd, of), (int fd, off64_t n), fd, n)
CALL(rename, "rename", from, (const char *from, const char *to), from, to)
CALL(renameat2, "rename", from, (int a, const char *from, int b, const char *to, unsigned flags), a,
     from, b, to, flags)
CALL(mkdir, "mkdir", path, (const char *path, mode_t mode), path, mode)
CALL(symlink, "symlink", path, (const char *to, const char *path), to, path)
CALL(unlink, "unlink", path, (const char *path), path)
CALL(rmdir, "unlink", path, (const char *path), path)

/* The file is closed in any case, as the kernel does it. */
int close(int fd)
{
    char path[4096];
    const char *how = judge("close", path_of(fd, path), 0);
    const int error = errno, bad = REAL(close)(fd);
    if (!fails(how)) return bad;
    errno = error;
    return -1;
}
