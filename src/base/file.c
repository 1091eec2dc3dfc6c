/* file.c - see file.h. */
#include "base/file.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOKS = 20, PEER_PAUSE_S = 5 }; /* looks within the limit; for another rank's last words */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { /* behind the lock */
    struct file_op *oldest, *newest;
    double deadline_s; /* 0: nobody watches */
} calls;

static void begin(struct file_op *op, const char *doing, const char *path, int64_t offset)
{
    *op = (struct file_op){doing, path, offset, clock_s(), NULL, NULL};
    pthread_mutex_lock(&lock);
    op->before = calls.newest;
    *(op->before ? &op->before->after : &calls.oldest) = op;
    calls.newest = op;
    pthread_mutex_unlock(&lock);
}

void file_begin(struct file_op *op, const char *doing, const char *path)
{
    begin(op, doing, path, -1);
}

/* errno stays that of the call. */
void file_end(struct file_op *op)
{
    pthread_mutex_lock(&lock);
    *(op->before ? &op->before->after : &calls.oldest) = op->after;
    *(op->after ? &op->after->before : &calls.newest) = op->before;
    pthread_mutex_unlock(&lock);
}

static const char *what_else(mode_t mode)
{
    if (S_ISDIR(mode)) return "not a regular file but a directory";
    if (S_ISFIFO(mode)) return "not a regular file but a pipe (FIFO)";
    return "not a regular file but a device";
}

/* Opening a FIFO waits for its writer without O_NONBLOCK; regular files ignore it. */
int file_open(const char *path, struct stat *st, const char **why)
{
    struct file_op op;
    file_begin(&op, "opening", path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool known = fd >= 0 && fstat(fd, st) == 0;
    file_end(&op);
    if (known && S_ISREG(st->st_mode)) return fd;
    const int error = known ? 0 : errno;
    *why = known ? what_else(st->st_mode) : strerror(error);
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

ssize_t file_read(int fd, const char *path, void *to, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        struct file_op op;
        begin(&op, "reading", path, (int64_t)(offset + done));
        const ssize_t n = pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));
        file_end(&op);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* The lock is held. Not by MPI_Abort: MPI may be called from the main thread only, and that may be
 * the one that is kept. The launcher ends the job. */
static _Noreturn void end_process(const struct file_op *op)
{
    char at[40] = "";
    if (op->offset >= 0) snprintf(at, sizeof at, " at byte %lld", (long long)op->offset);
    if (err_speak_first())
        err_say("fatal",
                "%s %s%s has not ended after 0.8 x %g s (run.deadline_s): the file system does not "
                "answer",
                op->doing, op->path, at, calls.deadline_s);
    else
        sleep(PEER_PAUSE_S);
    err_exit(CODE_IO);
}

static void *watch(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        const double limit_s = 0.8 * calls.deadline_s;
        if (calls.oldest && clock_s() - calls.oldest->since_s > limit_s) end_process(calls.oldest);
        pthread_mutex_unlock(&lock);
        usleep(limit_s < LOOKS ? (useconds_t)(1e6 * limit_s / LOOKS) : 999999);
    }
    return unused;
}

void file_watch(double deadline_s)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    const bool first = calls.deadline_s == 0;
    calls.deadline_s = deadline_s;
    pthread_mutex_unlock(&lock);
    if (!first) return;
    thread_start(&thread, watch, NULL, "watching file systems");
    pthread_detach(thread);
}
