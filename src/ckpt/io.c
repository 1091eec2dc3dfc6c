/* io.c - see io.h. */
#define _GNU_SOURCE /* sync_file_range */
#include "ckpt/io.h"

#include "base/file.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int io_fault(struct fault *fault, const char *what, const char *path)
{
    return fault_set(fault, CODE_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

int io_try_read(int fd, const char *path, void *to, int64_t bytes, int64_t offset,
                struct fault *fault)
{
    const ssize_t n = file_read(fd, path, to, (size_t)bytes, (uint64_t)offset);

    if (n == bytes) return 0;
    if (n < 0)
        return fault_set(fault, CODE_IO, "%s: reading %lld bytes at byte %lld: %s", path,
                         (long long)bytes, (long long)offset, strerror(errno));
    return fault_set(fault, CODE_DATA,
                     "%s: the file ends at byte %lld, expected %lld bytes at byte %lld", path,
                     (long long)(offset + n), (long long)bytes, (long long)offset);
}

int io_try_write(int fd, const char *path, const void *from, int64_t bytes, int64_t offset,
                 struct fault *fault)
{
    for (int64_t done = 0; done < bytes;) {
        const ssize_t n =
            pwrite(fd, (const char *)from + done, (size_t)(bytes - done), offset + done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return fault_set(fault, CODE_IO, "%s: writing %lld bytes at byte %lld: %s", path,
                             (long long)(bytes - done), (long long)(offset + done),
                             n < 0 ? strerror(errno) : "nothing was written");
        done += n;
    }
    return 0;
}

int io_try_create(const char *path, int flags, struct fault *fault)
{
    int fd;
    do fd = open(path, flags | O_CREAT | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? io_fault(fault, "create", path) : fd;
}

static int sync_fd(int fd)
{
    int bad;
    do bad = fsync(fd);
    while (bad && errno == EINTR);
    return bad;
}

/* An interrupted close has closed. */
int io_try_finish(int fd, const char *path, int bad, struct fault *fault)
{
    if (!bad && sync_fd(fd) != 0) bad = io_fault(fault, "sync", path);
    if (close(fd) != 0 && errno != EINTR && !bad) bad = io_fault(fault, "close", path);
    return bad;
}

int io_try_write_file(const char *path, const char *text, int64_t bytes, struct fault *fault)
{
    const int fd = io_try_create(path, O_WRONLY | O_TRUNC, fault);
    if (fd < 0) return -1;
    return io_try_finish(fd, path, io_try_write(fd, path, text, bytes, 0, fault), fault);
}

int io_try_open(const char *path, struct stat *st, struct fault *fault)
{
    const char *why;
    const int fd = file_open(path, st, &why);
    return fd < 0 ? fault_set(fault, CODE_NO_INPUT, "cannot open %s: %s", path, why) : fd;
}

char *io_try_read_file(const char *path, int64_t max, int64_t *bytes, struct fault *fault)
{
    struct stat st;
    char *text = NULL;
    const int fd = io_try_open(path, &st, fault);
    if (fd < 0) return NULL;
    if (st.st_size > max)
        fault_set(fault, CODE_DATA, "%s: %lld bytes, expected a file of at most %lld", path,
                  (long long)st.st_size, (long long)max);
    else if (!(text = malloc((size_t)st.st_size + 1)))
        fault_set(fault, CODE_IO, "%s: no memory for %lld bytes", path, (long long)st.st_size);
    else if (io_try_read(fd, path, text, st.st_size, 0, fault) != 0) {
        free(text);
        text = NULL;
    } else {
        text[st.st_size] = '\0';
        *bytes = st.st_size;
    }
    close(fd);
    return text;
}

int io_try_make_dirs(const char *dir, struct fault *fault)
{
    char path[PATH_BYTES];
    path_print(path, "%s", dir);
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0') continue;
        const char end = *at;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) return io_fault(fault, "make", path);
        if (end == '\0') return 0;
        *at = end;
    }
}

int io_try_sync_dir(const char *path, struct fault *fault)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return io_fault(fault, "open", path);
    /* Some file systems cannot sync directories, and then do not need it. */
    const int bad = sync_fd(fd) != 0 && errno != EINVAL ? io_fault(fault, "sync", path) : 0;
    close(fd);
    return bad;
}

void io_start_writeback(int fd, int64_t offset, int64_t bytes)
{
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd, (void)offset, (void)bytes;
#endif
}

struct ckpt_box io_box_part(const struct ckpt_box *box, int64_t done, int64_t n)
{
    struct ckpt_box part = *box;
    part.base += (box->first + done) / box->run * box->stride;
    part.first = (box->first + done) % box->run;
    part.count = n;
    return part;
}

int io_try_box(int fd, const char *path, const struct ckpt_tensor *tensor,
               const struct ckpt_box *box, void *memory, bool write, struct fault *fault)
{
    const int64_t size = (int64_t)dtype_bytes(tensor->dtype);
    for (int64_t done = 0; done < box->count;) {
        const int64_t i = box->first + done, inside = i % box->run;
        const int64_t at = box->base + i / box->run * box->stride + inside;
        const int64_t left = box->count - done, in_run = box->run - inside;
        const bool whole = box->run == box->stride; /* runs without gaps are one */
        const int64_t n = whole || left < in_run ? left : in_run;
        char *here = (char *)memory + done * size;
        const int64_t offset = tensor->offset + at * size;
        const int bad = write ? io_try_write(fd, path, here, n * size, offset, fault)
                              : io_try_read(fd, path, here, n * size, offset, fault);
        if (bad) return bad;
        done += n;
    }
    return 0;
}
